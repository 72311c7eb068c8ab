"""The command that starts bubblewrap."""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath

from lantern_grading.sandbox import layout
from lantern_grading.sandbox.limits import Limits

_LARGE_UIDS = 1_900_000_000
_SMALL_UIDS = 61_184  # to 65519: where systemd takes users that live as long as a service
_turn = itertools.count()


def spare_uid() -> int | None:
    """Return a user number that no other sandbox has, or None where it cannot be taken.

    The kernel never holds root to a number of processes. A grader that is root therefore gives each sandbox
    a user of its own, which is held to it.
    """
    if os.geteuid() != 0:
        return None
    number = _LARGE_UIDS + os.getpid() % 100_000 * 1000 + next(_turn) % 1000
    small = _SMALL_UIDS + (os.getpid() * 31 + next(_turn)) % 4336
    for uid in (number, small):
        if _mapped(uid):
            return uid
    return None


def _mapped(uid: int) -> bool:
    lines = [line.split() for line in Path("/proc/self/uid_map").read_text(encoding="ascii").splitlines()]
    return any(int(first) <= uid < int(first) + int(count) for first, _, count in lines)


def arguments(
    command: Sequence[str],
    *,
    limits: Limits,
    visible: Mapping[str, Path],
    files: int | None,
    info: int,
    filter_: int | None,
    uid: int | None,
    no_more_users: bool = True,
) -> list[str]:
    """Write the whole command line, without the program's name.

    Parameters
    ----------
    command : sequence of str
        What to run inside.
    limits : Limits
        Of one process, and the size of the scratch folder.
    visible : mapping
        Path inside, and path here; read-only.
    files : int, optional
        Descriptor with the packed files.
    info : int
        Descriptor that bubblewrap tells its first process.
    filter_ : int, optional
        Descriptor with the system call filter.
    uid : int, optional
        A user that the sandbox becomes, instead of a user namespace: see `spare_uid`.
    no_more_users : bool
        Whether this bubblewrap can forbid further user namespaces by itself (since 0.8).
    """
    line = ["--die-with-parent", "--new-session", "--info-fd", str(info), "--clearenv"]
    line += ["--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"]
    line += ["--hostname", "sandbox"]
    if uid is None:
        line += ["--unshare-user", "--uid", "1000", "--gid", "1000", *(["--disable-userns"] if no_more_users else [])]
    else:
        line += [
            "--cap-drop",
            "ALL",
            *(word for cap in ("SETUID", "SETGID", "SETPCAP") for word in ("--cap-add", f"CAP_{cap}")),
        ]
    for name, value in layout.environment().items():
        line += ["--setenv", name, value]
    line += _mounts(limits, visible, files)
    if filter_ is not None:
        line += ["--seccomp", str(filter_)]
    return [
        *line,
        "--chdir",
        layout.HOME,
        "--",
        *_become(uid),
        *limits.prlimit(),
        "/bin/sh",
        "-c",
        layout.LAUNCHER,
        "sh",
        *command,
    ]


def _mounts(limits: Limits, visible: Mapping[str, Path], files: int | None) -> list[str]:
    # bubblewrap makes missing parents for root alone; the sandbox may have another user.
    inside = [*visible, layout.FILES]
    parents = {str(parent) for path in inside for parent in PurePosixPath(path).parents} - {"/"} - set(visible)
    line: list[str] = []
    for path, here in sorted([*visible.items(), *((parent, None) for parent in parents)], key=lambda item: item[0]):
        line += ["--perms", "0755", "--dir", path] if here is None else ["--ro-bind", str(here), path]
    line += ["--proc", "/proc", "--dev", "/dev"]
    if files is not None:
        line += ["--perms", "0444", "--ro-bind-data", str(files), layout.FILES]
    for path, size in [("/scratch", limits.scratch_bytes), ("/dev/shm", limits.file_bytes)]:
        line += ["--perms", "1777", "--size", str(size), "--tmpfs", path]
    for path in (layout.HOME, "/scratch/tmp"):
        line += ["--perms", "0777", "--dir", path]
    # The root and /dev are file systems in memory, without a size.
    return [*line, "--symlink", "/scratch/tmp", "/tmp", "--remount-ro", "/dev", "--remount-ro", "/"]


def _become(uid: int | None) -> list[str]:
    if uid is None:
        return []
    me = str(uid)
    return [
        "setpriv",
        "--reuid",
        me,
        "--regid",
        me,
        "--clear-groups",
        "--inh-caps=-all",
        "--bounding-set=-all",
        "--no-new-privs",
    ]
