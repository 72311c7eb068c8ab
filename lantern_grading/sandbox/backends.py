"""The kinds of sandbox, one interface; there is no way from one to another but by name."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from lantern_grading.sandbox import bubblewrap, layout, seccomp
from lantern_grading.sandbox.errors import SandboxError
from lantern_grading.sandbox.limits import Limits
from lantern_grading.sandbox.process import Process
from lantern_grading.sandbox.scratch import Scratch
from lantern_grading.sandbox.starter import launch
from lantern_grading.sandbox.watch import Members, Namespace

_HELP = (
    "Student code is not run without a sandbox, so nothing was graded. On Linux: install bubblewrap, util-linux and "
    "tar (apt install bubblewrap) and allow user namespaces (sysctl user.max_user_namespaces, and "
    "kernel.unprivileged_userns_clone or kernel.apparmor_restrict_unprivileged_userns where they exist). On macOS, "
    "Windows, or in a container that forbids it, grade in a Linux virtual machine or name the container back end."
)


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
        shown = layout.visible() | _checked(visible)
        packed, filter_ = scratch.packed(), seccomp.program()
        with contextlib.ExitStack() as handles:
            files = _handle(packed, handles) if packed else None
            rules = _handle(filter_, handles) if filter_ else None
            told, tell = os.pipe()
            handles.callback(os.close, told)
            with os.fdopen(tell, "wb"):  # closed here after the start, so that an early end is seen
                arguments = bubblewrap.arguments(
                    command, limits=limits, visible=shown, files=files, info=tell, filter_=rules,
                    uid=bubblewrap.spare_uid(), no_more_users=self._no_more_users,
                )  # fmt: skip
                keep = [handle for handle in (files, rules, tell) if handle is not None]
                popen = launch([self._found, *arguments], pass_fds=keep, env={"PATH": "/usr/bin:/bin"}, cwd="/")
            with open(told, "rb", closefd=False) as answer:
                text = answer.read()
        return self._process(popen, text, limits)

    def _process(self, popen: subprocess.Popen[bytes], answer: bytes, limits: Limits) -> Process:
        try:
            first = int(json.loads(answer)["child-pid"])
            members = Namespace(first)
        except (ValueError, KeyError, ProcessLookupError, OSError):
            _, errors = popen.communicate()
            raise SandboxError(_complaint(self._found, errors.decode("utf-8", "replace"))) from None
        return Process(popen, limits=limits, members=members, root=Path(f"/proc/{first}/root"))


class Container:
    """A container for each submission, by Docker, Podman or what takes the same arguments.

    Parameters
    ----------
    image : str
        Has Python with the packages of the grading extra, ``prlimit``, ``tar`` and a shell.
    engine : str
        The engine's program.
    python : str
        The interpreter's path in the image.
    """

    name = "container"

    def __init__(self, image: str, engine: str = "docker", python: str = "python3") -> None:
        self.python, self._image, self._engine = python, image, engine
        self._found = ""

    def check(self) -> None:
        """Run something trivial; SandboxError with the whole explanation if that is not possible."""
        if self._found:
            return
        found = shutil.which(self._engine)
        if found is None:
            raise SandboxError(f"{self._engine} not found. Install the engine, or grade with bubblewrap.")
        result = subprocess.run(
            [found, "image", "inspect", self._image], capture_output=True, text=True, timeout=60, check=False
        )
        if result.returncode != 0:
            raise SandboxError(f"{self._engine} does not have the image {self._image}: {result.stderr.strip()}")
        self._found = found

    def start(
        self,
        command: Sequence[str],
        *,
        scratch: Scratch = Scratch(),  # noqa: B008
        limits: Limits = Limits(),  # noqa: B008
        visible: Mapping[str, Path] | None = None,
    ) -> Process:
        """Start a command in a new container; see `Backend.start`."""
        self.check()
        name = f"lantern-{uuid.uuid4().hex}"
        shown = {f"{layout.LIBRARY}/lantern_lib": layout.visible()[f"{layout.LIBRARY}/lantern_lib"]}
        shown |= _checked(visible)
        folder = Path(tempfile.mkdtemp(prefix="lantern-files-"))
        if packed := scratch.packed():
            (folder / "files.tar").write_bytes(packed)
            (folder / "files.tar").chmod(0o444)
            folder.chmod(0o755)
            shown[layout.FILES] = folder / "files.tar"

        def after() -> None:
            subprocess.run([self._found, "rm", "--force", name], capture_output=True, timeout=60, check=False)
            shutil.rmtree(folder, ignore_errors=True)

        line = [*self._options(name, limits, shown), self._image, *limits.prlimit(), "/bin/sh", "-c", layout.LAUNCHER]
        return Process(launch([self._found, *line, "sh", *command]), limits=limits, members=Members(), after=after)

    def _options(self, name: str, limits: Limits, shown: Mapping[str, Path]) -> list[str]:
        line = ["run", "--rm", "--interactive", "--init", "--name", name, "--network", "none", "--read-only"]
        line += ["--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--user", "61184:61184", "--pull", "never"]
        line += ["--pids-limit", str(limits.processes), "--memory", str(limits.memory_bytes)]
        line += ["--memory-swap", str(limits.memory_bytes), "--ipc", "none", "--log-driver", "none"]
        line += ["--tmpfs", f"/scratch:rw,exec,mode=1777,size={limits.scratch_bytes},nr_inodes={limits.scratch_files}"]
        line += ["--tmpfs", f"/tmp:rw,mode=1777,size={limits.file_bytes}"]
        for path, here in shown.items():
            line += ["--mount", f"type=bind,source={here},target={path},readonly"]
        inside = {key: value for key, value in layout.environment().items() if key != "PATH"}
        return line + [word for key, value in inside.items() for word in ("--env", f"{key}={value}")]


class NoSandbox:
    """No isolation at all, for the instructor's own trial of the instructor's own code; says so on every start."""

    name = "none"

    def __init__(self) -> None:
        self.python = sys.executable

    def check(self) -> None:
        """Nothing is needed."""

    def start(
        self,
        command: Sequence[str],
        *,
        scratch: Scratch = Scratch(),  # noqa: B008
        limits: Limits = Limits(),  # noqa: B008
        visible: Mapping[str, Path] | None = None,
    ) -> Process:
        """Start a command as it is. A word of it that is a key of `visible` becomes the path here."""
        print(
            "WARNING: no sandbox. This code can read and change everything that you can. Never use this with "
            "the work of students.",
            file=sys.stderr,
            flush=True,
        )
        shown = layout.visible() | _checked(visible)
        folder = Path(tempfile.mkdtemp(prefix="lantern-none-"))
        for path, content in scratch.files:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(content)
        here = str(shown[f"{layout.LIBRARY}/lantern_lib"].parent)
        environment = layout.environment() | {"HOME": str(folder), "TMPDIR": str(folder), "PYTHONPATH": here}
        line = [*limits.prlimit(), *(str(shown.get(word, word)) for word in command)]
        popen = launch(line, cwd=folder, env=environment)
        return Process(
            popen, limits=limits, members=Members(), root=folder,
            after=lambda: shutil.rmtree(folder, ignore_errors=True),
        )  # fmt: skip


def _checked(visible: Mapping[str, Path] | None) -> dict[str, Path]:
    for path, here in (visible or {}).items():
        if not path.startswith("/lantern/") or ".." in path:
            raise ValueError(f"visible must name paths below /lantern/, got {path!r}. Use /lantern/{Path(path).name}.")
        if not here.exists():
            raise ValueError(f"visible must name what exists, got {str(here)!r}. Check the path.")
    return {path: here.resolve() for path, here in (visible or {}).items()}


def _handle(content: bytes, handles: contextlib.ExitStack) -> int:
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
