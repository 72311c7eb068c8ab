"""The kinds of sandbox, one interface; there is no way from one to another but by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

from lantern_grading.sandbox.bubblewrap import Bubblewrap
from lantern_grading.sandbox.container import Container
from lantern_grading.sandbox.fork_server import ForkServer
from lantern_grading.sandbox.limits import Limits
from lantern_grading.sandbox.process import Process
from lantern_grading.sandbox.scratch import Scratch
from lantern_grading.sandbox.unsafe import NoSandbox


class Backend(Protocol):
    """A kind of sandbox.

    ``name`` is how the instructor calls it; ``python`` is the interpreter's path inside.
    """

    name: str
    python: str

    def check(self) -> None:
        """Run something trivial; SandboxError with the whole explanation if that is not possible."""

    def start(
        self,
        command: Sequence[str],
        *,
        scratch: Scratch = Scratch(),  # noqa: B008  (frozen)
        limits: Limits = Limits(),  # noqa: B008  (frozen)
        visible: Mapping[str, Path] | None = None,
    ) -> Process:
        """Start a command in a new sandbox.

        Parameters
        ----------
        command : sequence of str
            Program and arguments, as paths inside.
        scratch : Scratch
            Files that are put in the working folder; writes to them leave no trace.
        limits : Limits
            What it may use.
        visible : mapping, optional
            More files or folders to read: path inside, below ``/lantern/``, and path here.
        """


@runtime_checkable
class Forking(Backend, Protocol):
    """A kind of sandbox that a fork of a loaded program can enter, so that no program has to be started in it."""

    def fork_server(self, command: Sequence[str], first: bytes) -> ForkServer | None:
        """Start a process that loads a program and forks into sandboxes; None where the system does not allow it.

        ``command`` and ``first`` are those of `ForkServer`.
        """

    def enter(self, server: ForkServer, limits: Limits) -> Process:
        """Make a new sandbox and have a fork of the program enter it; SandboxError if the program has ended."""


BACKENDS = ("bubblewrap", "container", "none")


def choose(name: str = "bubblewrap", *, image: str = "", engine: str = "docker") -> Backend:
    """Return the back end of that name, checked; there is no fallback.

    Raises
    ------
    SandboxError
        If it cannot be had here.
    """
    if name not in BACKENDS:
        raise ValueError(f"backend must be one of {', '.join(BACKENDS)}, got {name!r}. The default is bubblewrap.")
    if name == "container" and not image:
        raise ValueError("image must be named for the container back end, got nothing. Build one with the package.")
    backend: Backend = Bubblewrap() if name == "bubblewrap" else NoSandbox()
    if name == "container":
        backend = Container(image, engine)
    backend.check()
    return backend
