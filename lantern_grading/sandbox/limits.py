"""How much of the machine a submission may use."""

from __future__ import annotations

from dataclasses import dataclass, fields

from lantern_lib.units import GIB, MIB


@dataclass(frozen=True)
class Limits:
    """What one sandbox may use; every value is positive.

    The operating system holds the limits of one process, the watchdog of `Process` those of the whole
    sandbox. ``cell_seconds`` is for whoever runs the cells: a sandbox does not know where one ends.

    Examples
    --------
    >>> Limits(processes=8).processes
    8
    >>> Limits(processes=0)
    Traceback (most recent call last):
    ValueError: processes must be a positive number, got 0. A sandbox without processes runs nothing.
    """

    cell_seconds: float = 30.0  # one cell, or one call of a student's function
    total_seconds: float = 300.0  # the sandbox, from its start
    cpu_seconds: int = 240  # on the processor: one process, and all together
    address_space_bytes: int = int(4 * GIB)  # one process: allocating more is a MemoryError
    memory_bytes: int = int(3 * GIB)  # resident in all processes together
    file_bytes: int = int(32 * MIB)  # one file
    scratch_bytes: int = int(64 * MIB)  # all files
    scratch_files: int = 2000  # how many files
    open_files: int = 256  # one process
    processes: int = 64  # processes and threads together
    output_bytes: int = int(1 * MIB)  # what is kept of the printed output

    def __post_init__(self) -> None:
        hints = {"processes": "A sandbox without processes runs nothing."}
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
                hint = hints.get(field.name, "Leave it out for the default.")
                raise ValueError(f"{field.name} must be a positive number, got {value!r}. {hint}")
            if isinstance(field.default, int) and not isinstance(value, int):
                raise ValueError(f"{field.name} must be a whole number, got {value!r}. Round it.")

    def of_a_process(self) -> dict[str, int]:
        """Return the limits that the operating system holds a process to, by their names in `resource`."""
        return {
            "RLIMIT_AS": self.address_space_bytes,
            "RLIMIT_CPU": self.cpu_seconds,
            "RLIMIT_FSIZE": self.file_bytes,
            "RLIMIT_NOFILE": self.open_files,
            "RLIMIT_NPROC": self.processes,
            "RLIMIT_CORE": 0,
        }

    def prlimit(self) -> list[str]:
        """Return the command that sets the limits of one process and starts another in its place."""
        limits = self.of_a_process().items()
        return ["prlimit", *(f"--{name.removeprefix('RLIMIT_').lower()}={value}" for name, value in limits), "--"]
