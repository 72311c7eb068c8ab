"""The instructor's commands: ``python -m lantern_grading release|student|variant|grade|feedback|marks``."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from lantern_grading import archive, marks, variants
from lantern_grading.course import Course, GradingError, release
from lantern_grading.paths import LABS, ROOT, SOLUTIONS

ARCHIVE = ROOT / "release" / "lantern-student.zip"


def grade(course: Course, assignment: str) -> int:
    """Grade all submissions, one after the other; one that fails stops no other.

    Parameters
    ----------
    course : Course
        The class.
    assignment : str
        The assignment [text].

    Returns
    -------
    int
        How many could not be graded [count].
    """
    course.generate(assignment)
    handed_in = [name for name in course.students() if (course.folder / "submitted" / name / assignment).is_dir()]
    failed = 0
    for number, student in enumerate(handed_in, 1):
        start, problem = time.monotonic(), marks.failure_file(course, assignment, student)
        try:
            course.autograde(assignment, student)
            course.feedback(assignment, student)
        except GradingError as error:
            failed += 1
            problem.parent.mkdir(parents=True, exist_ok=True)
            problem.write_text(f"{error}\n", encoding="utf-8")
            outcome = f"FAILED: {error}"
        else:
            problem.unlink(missing_ok=True)
            outcome = "graded"
        print(f"[{number}/{len(handed_in)}] {student}: {outcome} ({time.monotonic() - start:.1f} s)", flush=True)
    _export(course, assignment)
    print(f"{len(handed_in) - failed} graded, {failed} failed.")
    return failed


def _export(course: Course, assignment: str) -> None:
    path = course.folder / f"marks-{assignment}.csv"
    marks.write(marks.read(course, assignment), path)
    print(f"marks: {path}")


def _feedback(course: Course, assignment: str) -> int:
    """Write the pages again, for example after grading by hand."""
    failed = 0
    for mark in marks.read(course, assignment):
        if mark.score is None:
            continue
        try:
            print(f"{mark.student}: {course.feedback(assignment, mark.student)}")
        except GradingError as error:
            failed += 1
            print(f"{mark.student}: FAILED: {error}")
    _export(course, assignment)
    return failed


def _variant(given: argparse.Namespace) -> None:
    if not given.list and not given.student:
        raise ValueError("student must be one id or more, got none. Say --student ID, or --list.")
    for student in given.student:
        print(variants.write(given.assignment, student, given.out, course=given.course))
    if given.list:
        names = list(variants.choices(given.assignment))
        print("\t".join(["student", *names]))
        for student, values in variants.given(given.assignment, given.course).items():
            print("\t".join([student, *(str(values.get(name, "")) for name in names)]))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m lantern_grading", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
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
    variant.add_argument("--course", type=Path, default=variants.COURSE, help="the class's folder; keeps the draws")
    variant.add_argument("--list", action="store_true", help="print what each student of the class was given")
    for name, text in [
        ("grade", "run all submissions, write feedback and marks"),
        ("feedback", "write feedback and marks again, after grading by hand"),
        ("marks", "write the marks of the gradebook as CSV"),
    ]:
        command = commands.add_parser(name, help=text)
        command.add_argument("--course", type=Path, required=True, help="the folder with submitted/ in it")
        command.add_argument("--assignment", required=True, help="for example week1")
        command.add_argument("--source", type=Path, default=SOLUTIONS)
    return parser


def main(arguments: list[str] | None = None) -> int:
    """Run one command.

    Parameters
    ----------
    arguments : list of str, optional
        Instead of the command line.

    Returns
    -------
    int
        0, or 1 when something could not be done: the exit status.
    """
    given = _parser().parse_args(arguments)
    try:
        if given.command == "release":
            for assignment in given.assignment:
                print(release(assignment, given.labs, given.source))
            return 0
        if given.command == "student":
            print(archive.write(given.out))
            return 0
        if given.command == "variant":
            _variant(given)
            return 0
        course = Course(given.course, given.source)
        if given.command == "grade":
            return int(grade(course, given.assignment) > 0)
        if given.command == "feedback":
            return int(_feedback(course, given.assignment) > 0)
        _export(course, given.assignment)
        return 0
    except (GradingError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
