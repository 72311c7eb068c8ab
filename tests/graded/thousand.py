"""Grades a class of a real lab in a process of its own: ``thousand.py COURSE LAB PROCESSES KILL_AT``.

After each paper that is recorded it notes its resident memory in COURSE.memory, and with KILL_AT (0 is never) it kills
itself with signal 9 after that many.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
from pathlib import Path
from typing import Any

from lantern_grading import run
from lantern_grading.classroom import Classroom
from lantern_grading.paths import SOLUTIONS
from lantern_grading.sandbox import Limits
from lantern_grading.sandboxed import SandboxGrader
from lantern_grading.template import load

#: A paper that loops for ever costs this, and no honest answer takes so long.
LIMITS = Limits(cell_seconds=60.0, total_seconds=300.0)


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def main() -> None:
    course, lab, count, kill_at = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    plain, recorded = run._publish, 0
    with open(f"{course}.memory", "a", encoding="ascii") as memory:

        def publish(*about: Any) -> None:
            nonlocal recorded
            plain(*about)
            recorded += 1
            print(resident_bytes(), file=memory, flush=True)
            if recorded == kill_at:
                os.kill(os.getpid(), signal.SIGKILL)

        run._publish = publish
        report = run.grade(
            Classroom.open(course), load(lab), SandboxGrader.of(lab, SOLUTIONS, limits=LIMITS), count=count
        )
    print(f"graded {report.graded_now} in {report.seconds:.0f} s: {dict(report.states)}")


if __name__ == "__main__":
    main()
