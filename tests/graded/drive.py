"""Grades classes of the quiz in processes that can be killed: ``drive.py SOURCE COURSE:KILL_AT ...``.

With KILL_AT (0 is never) the process kills itself with signal 9 at that many'th moment at which something is
written: a file is replaced, a transaction begins, a statement is executed, or a commit is about to be or was made.
With ``c`` before the number only replaced files and commits are counted: what changes the state of something.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
from small_class import QUIZ, FakeGrader

from lantern_grading import database, run
from lantern_grading.classroom import Classroom
from lantern_grading.template import load

moments = 0


def install(kill_at: int, only_changes: bool) -> None:
    from sqlalchemy import event
    from sqlalchemy.engine import Engine

    def tick(*_: Any) -> None:
        global moments
        moments += 1
        if moments == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    for name in ("commit",) if only_changes else ("begin", "commit", "before_cursor_execute", "after_cursor_execute"):
        event.listen(Engine, name, tick)
    plain = Path.replace

    def replace(self: Path, target: Any) -> Any:
        tick()
        done = plain(self, target)
        tick()
        return done

    Path.replace = replace  # type: ignore[method-assign]
    after = database.Database.write

    def write(self: database.Database, change: Any) -> Any:
        done = after(self, change)
        tick()  # committed
        return done

    database.Database.write = write  # type: ignore[method-assign]


def main() -> None:
    template = load(QUIZ, Path(sys.argv[1]))
    for job in sys.argv[2:]:
        # Each in a process of its own: what has been loaded is shared, and nothing else.
        course, _, kill_at = job.rpartition(":")
        child = os.fork()
        if child == 0:
            install(int(kill_at.removeprefix("c")), kill_at.startswith("c"))
            report = run.grade(Classroom.open(Path(course)), template, FakeGrader.of(template))
            print(f"moments {moments} graded {report.graded_now}", flush=True)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        print("killed" if os.WIFSIGNALED(status) else "ended", flush=True)


if __name__ == "__main__":
    main()
