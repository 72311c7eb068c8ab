"""The instructor's commands: ``python -m lantern_grading release|student|variant|roster|collect|grade|marks ...``.

It ends with 0 if everything was done, with 1 if it was and something waits for the instructor, with 2 if the command
could not begin, and with 3 if it had to stop on the way: then run it again.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from lantern_grading.paths import LABS, ROOT, SOLUTIONS

# What a command needs is loaded when it is called: a worker process begins by loading this file.
ARCHIVE = ROOT / "release" / "lantern-student.zip"


def _for_class(commands: argparse._SubParsersAction, name: str, text: str, *, exam: bool = True):  # type: ignore[no-untyped-def, type-arg]
    command = commands.add_parser(name, help=text)
    command.add_argument("--course", type=Path, required=True, help="the class's folder")
    if exam:
        command.add_argument("--assignment", required=True, help="for example week1")
        command.add_argument("--source", dest="exams", type=Path, default=SOLUTIONS, help="the solutions' folder")
    return command


def _grading(commands: argparse._SubParsersAction) -> None:  # type: ignore[type-arg]
    for name, text in [
        ("grade", "grade what is new, and everybody if the exam has changed"),
        ("regrade", "grade everybody again and say who moved"),
    ]:
        command = _for_class(commands, name, text)
        command.add_argument("-j", "--jobs", type=int, default=0, help="processes; all processors without")
        command.add_argument("--student", action="append", help="only this one; may be given several times")
        command.add_argument("--quiet", action="store_true", help="draw no bar")
        command.add_argument("--scheduler", default="", help="address of a Dask scheduler, to grade on its workers")
        command.add_argument("--sandbox", choices=["bubblewrap", "container", "none"], default="bubblewrap")
        command.add_argument("--image", default="", help="of the container")
        command.add_argument("--engine", default="docker", help="the program that runs containers")
        command.set_defaults(again=name == "regrade")


def _variant(given: argparse.Namespace) -> None:
    from lantern_grading import variants
    from lantern_grading.variants import notebooks

    if not given.list and not given.student:
        raise ValueError("student must be one id or more, got none. Say --student ID, or --list.")
    for student in given.student:
        print(notebooks.write(given.assignment, student, given.out, course=given.course))
    if given.list:
        names = list(variants.choices(given.assignment))
        print("\t".join(["student", *names]))
        for student, values in variants.given(given.assignment, given.course).items():
            print("\t".join([student, *(str(values.get(name, "")) for name in names)]))


def parser() -> argparse.ArgumentParser:
    """Return what reads the command line."""
    whole = argparse.ArgumentParser(prog="python -m lantern_grading", description=__doc__)
    commands = whole.add_subparsers(dest="command", required=True)
    making = commands.add_parser("release", help="write labs/<week> from solutions/<week>")
    making.add_argument("assignment", nargs="+", help="for example week1")
    making.add_argument("--labs", type=Path, default=LABS)
    making.add_argument("--source", type=Path, default=SOLUTIONS)
    student = commands.add_parser("student", help="write the archive for students")
    student.add_argument("--out", type=Path, default=ARCHIVE, help="a name that ends in .zip or .tar.gz")
    variant = commands.add_parser("variant", help="write students' own instances of a lab, or list what they got")
    variant.add_argument("assignment", help="for example week3")
    variant.add_argument("--student", nargs="+", default=[], help="one id or several")
    variant.add_argument("--out", type=Path, default=ROOT / "release" / "variants", help="gets <student>/<week>/")
    variant.add_argument("--course", type=Path, default=ROOT / "gradebook", help="the class's folder; keeps the draws")
    variant.add_argument("--list", action="store_true", help="print what each student of the class was given")
    people = _for_class(commands, "roster", "enter a class from a CSV file", exam=False)
    people.add_argument("file", type=Path, help="id,last_name,first_name,email,canvas; or an export of a platform")
    taking = _for_class(commands, "collect", "take in what was handed in", exam=False)
    taking.add_argument("--assignment", required=True, help="for example week1")
    taking.add_argument("source", type=Path, help="a folder with one folder a student, or a platform's archive")
    taking.add_argument("--from", dest="platform", choices=["folder", "canvas", "moodle"], default="folder")
    taking.add_argument("--times", type=Path, help="CSV: student,received")
    taking.add_argument("--worksheet", type=Path, help="Moodle's grading worksheet")
    taking.add_argument("--zone", default="", help="the worksheet's time zone, for example Europe/Berlin")
    _grading(commands)
    _for_class(commands, "feedback", "write feedback again, after grading by hand")
    table = _for_class(commands, "marks", "write the marks as CSV, or fill a platform's file")
    table.add_argument("--to", choices=["csv", "canvas", "moodle"], default="csv")
    table.add_argument("--file", type=Path, help="what the platform exports")
    table.add_argument("--column", default="", help="Canvas: how the column begins; the assignment's name without")
    table.add_argument("--partial", action="store_true", help="write also scores of which a part waits for a person")
    _for_class(commands, "dashboard", "write the class's page")
    _for_class(commands, "status", "say how everybody stands")
    out = _for_class(commands, "export-student", "write all that is known about one student", exam=False)
    out.add_argument("student")
    out.add_argument("--out", type=Path, required=True, help="a name that ends in .zip")
    gone = _for_class(commands, "erase-student", "erase one student from the class", exam=False)
    gone.add_argument("student")
    return whole


def main(arguments: list[str] | None = None) -> int:
    """Run one command.

    Parameters
    ----------
    arguments : list of str, optional
        Instead of the command line.

    Returns
    -------
    int
        The exit status: 0 done, 1 something waits for the instructor, 2 not begun, 3 stopped on the way.
    """
    given = parser().parse_args(arguments)
    try:
        if given.command == "release":
            from lantern_grading.course import release

            for assignment in given.assignment:
                print(release(assignment, given.labs, given.source))
            return 0
        if given.command == "student":
            from lantern_grading import archive

            print(archive.write(given.out))
            return 0
        if given.command == "variant":
            _variant(given)
            return 0
        return _run(given)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


def _run(given: argparse.Namespace) -> int:
    from lantern_grading.classroom import Classroom
    from lantern_grading.commands import COMMANDS
    from lantern_grading.database import GradingStopped

    try:
        return COMMANDS[given.command](given, Classroom.open(given.course))
    except GradingStopped as stopped:
        print(f"stopped: {stopped}", file=sys.stderr)
    except OSError as error:
        print(f"stopped: {error.strerror or error}. Nothing is lost: run again to continue.", file=sys.stderr)
    except KeyboardInterrupt:
        print("\nstopped: what was graded is recorded; run again to continue.", file=sys.stderr)
    return 3


if __name__ == "__main__":
    # nbformat loads jsonschema, and that a parser of international web addresses which compiles 35 grammars: half of
    # the time in which a command starts. No notebook's schema has such an address, and jsonschema does without.
    sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
    sys.exit(main())
