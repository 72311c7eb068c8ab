"""Linux namespaces by bubblewrap: the command, and the back end."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
import select
import shutil
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from lantern_grading.sandbox import entering, layout, seccomp
from lantern_grading.sandbox.errors import SandboxError
from lantern_grading.sandbox.fork_server import ForkServer
from lantern_grading.sandbox.limits import Limits
from lantern_grading.sandbox.process import Process
from lantern_grading.sandbox.scratch import Scratch
from lantern_grading.sandbox.starter import launch
from lantern_grading.sandbox.watch import Namespace

_HELP = (
    "Student code is not run without a sandbox, so nothing was graded. On Linux: install bubblewrap, util-linux and "
    "tar (apt install bubblewrap) and allow user namespaces (sysctl user.max_user_namespaces, and "
    "kernel.unprivileged_userns_clone or kernel.apparmor_restrict_unprivileged_userns where they exist). On macOS, "
    "Windows, or in a container that forbids it, grade in a Linux virtual machine or name the container back end."
)
_LARGE_UIDS = 1_900_000_000
_SMALL_UIDS = 61_184  # to 65519: where systemd takes users that live as long as a service
_START_SECONDS = 30.0
_turn = itertools.count()
# Says that the sandbox stands, and keeps it until the one that entered has ended: then it ends with the same status.
_HOLD = ("/bin/sh", "-c", 'echo; read -r status; exit "${status:-1}"')


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
    wait: int,
    filter_: int | None,
    uid: int | None,
    no_more_users: bool = True,
    entered: bool = False,
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
    wait : int
        Descriptor on which it waits for a byte before it starts the command.
    filter_ : int, optional
        Descriptor with the system call filter.
    uid : int, optional
        A user that the sandbox becomes, instead of a user namespace: see `spare_uid`.
    no_more_users : bool
        Whether this bubblewrap can forbid further user namespaces by itself (since 0.8).
    entered : bool
        Whether a process from outside enters. The command only waits: it gets no limits, and no other user.
    """
    line = ["--die-with-parent", "--new-session", "--info-fd", str(info), "--block-fd", str(wait), "--clearenv"]
    line += ["--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"]
    line += ["--hostname", "sandbox"]
    if uid is None:
        line += ["--unshare-user", "--uid", "1000", "--gid", "1000", *(["--disable-userns"] if no_more_users else [])]
    else:
        needed = () if entered else ("SETUID", "SETGID", "SETPCAP")
        line += ["--cap-drop", "ALL", *(word for cap in needed for word in ("--cap-add", f"CAP_{cap}"))]
    for name, value in layout.environment().items():
        line += ["--setenv", name, value]
    line += _mounts(limits, visible, files)
    if filter_ is not None:
        line += ["--seccomp", str(filter_)]
    line += ["--chdir", layout.HOME, "--"]
    if entered:
        return [*line, *command]
    return [*line, *_become(uid), *limits.prlimit(), "/bin/sh", "-c", layout.LAUNCHER, "sh", *command]


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
    for path in (layout.HOME, layout.RUN, "/scratch/tmp"):
        line += ["--perms", "0777", "--dir", path]
    # A project that lies below /tmp makes it a folder, read-only like the rest. TMPDIR leads to the scratch folder.
    tmp = [] if "/tmp" in parents else ["--symlink", "/scratch/tmp", "/tmp"]
    # The root and /dev are file systems in memory, without a size.
    return [*line, *tmp, "--remount-ro", "/dev", "--remount-ro", "/"]


def _become(uid: int | None) -> list[str]:
    if uid is None:
        return []
    me = str(uid)
    caps = ["--inh-caps=-all", "--bounding-set=-all"]
    return ["setpriv", "--reuid", me, "--regid", me, "--clear-groups", *caps, "--no-new-privs"]


class Bubblewrap:
    """Linux namespaces by bubblewrap; the default.

    Parameters
    ----------
    program : str
        The program's name or path.
    """

    name = "bubblewrap"

    def __init__(self, program: str = "bwrap") -> None:
        self.python = sys.executable
        self._program = program
        self._found = ""
        self._no_more_users = False
        self._enterable: bool | None = None

    def check(self) -> None:
        """Run something trivial; SandboxError with the whole explanation if that is not possible."""
        if self._found:
            return
        missing = [name for name in (self._program, "prlimit", "setpriv", "tar") if shutil.which(name) is None]
        if missing:
            raise SandboxError(f"{', '.join(missing)} not found. {_HELP}")
        found = shutil.which(self._program) or self._program
        version = subprocess.run([found, "--version"], capture_output=True, text=True, timeout=30, check=False).stdout
        numbers = re.search(r"(\d+)\.(\d+)", version)
        self._no_more_users = numbers is not None and (int(numbers[1]), int(numbers[2])) >= (0, 8)
        self._found = found
        try:
            with self.start(["true"], limits=Limits(total_seconds=30)) as process:
                status = process.wait(60)
            if status != 0:
                raise SandboxError(_complaint(found, process.errors()))
        except BaseException:
            self._found = ""
            raise

    def start(
        self,
        command: Sequence[str],
        *,
        scratch: Scratch = Scratch(),  # noqa: B008
        limits: Limits = Limits(),  # noqa: B008
        visible: Mapping[str, Path] | None = None,
    ) -> Process:
        """Start a command in a new sandbox; see `Backend.start`."""
        self.check()
        shown = layout.visible() | layout.more(visible)
        uid = spare_uid()
        with self._made(command, limits=limits, visible=shown, packed=scratch.packed(), uid=uid) as made:
            return Process(made.popen, limits=limits, members=made.members, root=made.root)

    def fork_server(self, command: Sequence[str], first: bytes) -> ForkServer | None:
        """Start a process that forks into sandboxes; see `Backend.fork_server`."""
        self.check()
        return ForkServer(command, first) if self._can_be_entered() else None

    def enter(self, server: ForkServer, limits: Limits) -> Process:
        """Have a fork enter a new sandbox; see `Backend.enter`."""
        self.check()
        uid = spare_uid()
        with contextlib.ExitStack() as theirs, contextlib.ExitStack() as ours:
            life, live = _pipe(theirs)
            ready, stand = _pipe(theirs)
            reading, stdin = _pipe(theirs, ours)
            stdout, writing = _pipe(ours, theirs)
            stderr, errors = _pipe(ours, theirs)
            pipes = (stdin, stdout, stderr)
            with self._made(
                _HOLD, limits=limits, visible=layout.visible(), uid=uid, entered=True, stdin=life, stdout=stand,
                stderr=errors,
            ) as made:  # fmt: skip
                process = Process(made.popen, limits=limits, members=made.members, pipes=pipes, root=made.root)
                ours.pop_all()  # the process closes them now
            try:
                handles = [file.fileno() for file in (ready, live, reading, writing, errors)]
                made.members.entered(server.enter([made.members.handle, *handles], limits=limits, uid=uid))
            except BaseException:
                process.close()
                raise
        return process

    def _can_be_entered(self) -> bool:
        """Try once whether the system lets a process of ours enter what bubblewrap makes."""
        if self._enterable is None:
            uid = spare_uid()
            with (
                self._made(["true"], limits=Limits(), visible=layout.visible(), uid=uid, entered=True) as made,
                Process(made.popen, limits=Limits(total_seconds=30), members=made.members),
            ):
                self._enterable = _enters(made.members.handle, uid)
        return self._enterable

    @contextlib.contextmanager
    def _made(
        self,
        command: Sequence[str],
        *,
        limits: Limits,
        visible: Mapping[str, Path],
        uid: int | None,
        packed: bytes = b"",
        entered: bool = False,
        **streams: IO[bytes],
    ) -> Iterator[_Made]:
        """Have bubblewrap make a sandbox; when the context is left, it starts the command."""
        filter_ = seccomp.program()
        with contextlib.ExitStack() as handles:
            files = _readable(packed, handles) if packed else None
            rules = _readable(filter_, handles) if filter_ else None
            told, tell = _pipe(handles)
            wait, go = _pipe(handles)
            line = arguments(
                command, limits=limits, visible=visible, files=files, info=tell.fileno(), wait=wait.fileno(),
                filter_=rules, uid=uid, no_more_users=self._no_more_users, entered=entered,
            )  # fmt: skip
            keep = [handle for handle in (files, rules, tell.fileno(), wait.fileno()) if handle is not None]
            popen = launch([self._found, *line], pass_fds=keep, env={"PATH": "/usr/bin:/bin"}, cwd="/", **streams)
            tell.close()  # so that we see the end of it, if there is no answer
            first = _answer(told)
            try:
                members = Namespace(first)
            except OSError:
                popen.kill()
                errors = (popen.communicate()[1] or b"").decode("utf-8", "replace")
                raise SandboxError(_complaint(self._found, errors)) from None
            yield _Made(popen, members, Path(f"/proc/{first}/root"))
            with contextlib.suppress(BrokenPipeError):
                go.write(b"x")  # it waits until it is watched


@dataclass(frozen=True)
class _Made:
    """A sandbox that stands: the program that holds it, who is in it, and where its files are seen."""

    popen: subprocess.Popen[bytes]
    members: Namespace
    root: Path


def _enters(first: int, uid: int | None) -> bool:
    with warnings.catch_warnings():
        # Python warns of threads that a child lacks. This one makes one system call and ends.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            entering.enter(first, {"uid": uid})
            os._exit(0)
        os._exit(1)
    return os.waitpid(child, 0)[1] == 0


def _pipe(readers: contextlib.ExitStack, writers: contextlib.ExitStack | None = None) -> tuple[IO[bytes], IO[bytes]]:
    """Make a pipe whose ends are closed with these."""
    reading, writing = os.pipe()
    return (
        readers.enter_context(open(reading, "rb", buffering=0)),
        (writers or readers).enter_context(open(writing, "wb", buffering=0)),
    )


def _answer(told: IO[bytes]) -> int:
    """Read which process is the first in the sandbox; -1 if that does not come."""
    answer, deadline = b"", time.monotonic() + _START_SECONDS
    while select.select([told], [], [], max(deadline - time.monotonic(), 0))[0]:
        part = told.read(4096) or b""
        answer += part
        with contextlib.suppress(ValueError, KeyError, TypeError):
            return int(json.loads(answer)["child-pid"])
        if not part:
            break
    return -1


def _readable(content: bytes, handles: contextlib.ExitStack) -> int:
    """Return a descriptor from which the content can be read."""
    handle = os.memfd_create("lantern")
    handles.callback(os.close, handle)
    with open(handle, "wb", closefd=False) as file:
        file.write(content)
    os.lseek(handle, 0, os.SEEK_SET)
    return handle


def _complaint(program: str, errors: str) -> str:
    said = next((line for line in reversed(errors.strip().splitlines()) if line.strip()), "it says nothing")
    return f"{program} cannot make a sandbox here: {said.strip()}. {_HELP}"
