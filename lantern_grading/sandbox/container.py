"""A container for each submission, where an engine is at hand and bubblewrap is not."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path

from lantern_grading.sandbox import layout
from lantern_grading.sandbox.errors import SandboxError
from lantern_grading.sandbox.limits import Limits
from lantern_grading.sandbox.process import Process
from lantern_grading.sandbox.scratch import Scratch
from lantern_grading.sandbox.starter import launch
from lantern_grading.sandbox.watch import Members


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
        shown |= layout.more(visible)
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
