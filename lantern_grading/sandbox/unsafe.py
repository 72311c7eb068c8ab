"""No sandbox at all."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from lantern_grading.sandbox import layout
from lantern_grading.sandbox.limits import Limits
from lantern_grading.sandbox.process import Process
from lantern_grading.sandbox.scratch import Scratch
from lantern_grading.sandbox.starter import launch
from lantern_grading.sandbox.watch import Members


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
        shown = layout.visible() | layout.more(visible)
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
