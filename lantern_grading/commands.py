"""What the instructor's commands do; ``__main__`` reads their words."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from lantern_grading import dashboard, exports, ledger, marks, privacy, receipts, regrade, roster, run
from lantern_grading.classroom import Classroom, replace_file
from lantern_grading.collect import collect
from lantern_grading.database import Database
from lantern_grading.feedback_pages import refresh
from lantern_grading.template import Template, load

GOOD, UNFINISHED = 0, 1


def _write(classroom: Classroom, name: str, text: str) -> Path:
    path = classroom.report(name)
    replace_file(path, text.encode())
    print(f"{name}: {path}")
    return path


def _marks(classroom: Classroom, template: Template) -> list[marks.Mark]:
    with Database(classroom.db_url) as database:
        return marks.read(classroom, database, template)


def enter_roster(given: Namespace, classroom: Classroom) -> int:
    """Put a class in the gradebook."""
    people = roster.read(given.file)
    with classroom.lock(), Database(classroom.db_url) as database:
        new, known = database.write(lambda connection: roster.enter(connection, people))
    print(f"{new} new students, {known} were there.")
    return GOOD


def collect_work(given: Namespace, classroom: Classroom) -> int:
    """Take in what was handed in."""
    times = receipts.read_times(given.times) if given.times else None
    done = collect(
        classroom, given.assignment, given.source, given.platform,
        times=times, worksheet=given.worksheet, zone=given.zone,
    )  # fmt: skip
    print(done.table())
    return GOOD if done.clean else UNFINISHED


def grade(given: Namespace, classroom: Classroom) -> int:
    """Grade what is new, and say how everything stands."""
    from lantern_grading import sandboxed

    template = load(given.assignment, given.exams)
    if given.sandbox == "none":
        print("WARNING: no sandbox. The submissions' code runs as you, with your files and your network.")
    kind = {"backend": given.sandbox, "image": given.image, "engine": given.engine}
    grader = sandboxed.SandboxGrader.of(given.assignment, given.exams, **kind)
    try:
        return grade_with(given, classroom, template, grader)
    finally:
        sandboxed.close()


def grade_with(given: Namespace, classroom: Classroom, template: Template, grader: Any) -> int:
    """Grade with any grader, and write marks, the dashboard, and who moved."""
    count = given.jobs or run.processors()
    if given.scheduler:
        from distributed import Client

        with Client(given.scheduler) as client:
            report = _run(given, classroom, template, grader, client.get_executor(), count)
    else:
        report = _run(given, classroom, template, grader, None, count)
    print(report.table())
    with Database(classroom.db_url) as database:
        found = marks.read(classroom, database, template)
        with database.reading() as connection:
            attempts = ledger.newest(connection, template.assignment)
            moved = regrade.moves(
                connection, template.assignment, template.exam_hash, partial(run.exam_hash, classroom, template)
            )
    _write(classroom, f"marks-{template.assignment}.csv", marks.as_csv(found))
    _write(classroom, f"dashboard-{template.assignment}.html", dashboard.page(template, found, attempts))
    if moved:
        _write(classroom, f"moved-{template.assignment}.csv", regrade.as_csv(moved))
        print(regrade.summary(moved))
    return GOOD if report.clean else UNFINISHED


def _run(
    given: Namespace, classroom: Classroom, template: Template, grader: Any, executor: Any, count: int
) -> run.RunReport:
    return run.grade(
        classroom, template, grader, executor=executor, count=count, students=given.student or None,
        force=given.again, progress=not given.quiet,
    )  # fmt: skip


def feedback(given: Namespace, classroom: Classroom) -> int:
    """Write the pages that have changed, for example after grading by hand."""
    template = load(given.assignment, given.exams)
    with classroom.lock(), Database(classroom.db_url) as database:
        run.set_penalties(classroom, database, template)
        written = refresh(classroom, database, template)
    print(f"{written} pages written, in {classroom.folder / 'feedback'}")
    found = _marks(classroom, template)
    _write(classroom, f"marks-{template.assignment}.csv", marks.as_csv(found))
    return GOOD


def write_marks(given: Namespace, classroom: Classroom) -> int:
    """Write the marks as CSV, or fill the file of a platform."""
    template = load(given.assignment, given.exams)
    found = _marks(classroom, template)
    if given.to == "csv":
        _write(classroom, f"marks-{template.assignment}.csv", marks.as_csv(found))
        unfinished = [(mark.student, _why(mark)) for mark in marks.unfinished(found)]
    else:
        if given.file is None:
            raise ValueError(f"file must be the table that {given.to} exports, got nothing. Download it there first.")
        with Database(classroom.db_url) as database, database.reading() as connection:
            people = roster.everybody(connection)
            numbers = roster.identities(connection, f"moodle:{template.assignment}")
        if given.to == "canvas":
            column = given.column or template.assignment
            export = exports.canvas(found, people, given.file, column, given.partial)
        else:
            export = exports.moodle(found, people, given.file, numbers, given.partial)
        _write(classroom, f"{given.to}-{template.assignment}.csv", export.text)
        print(f"{len(export.written)} scores written.")
        unfinished = list(export.left_out)
    for student, why in unfinished:
        print(f"  {student}: not written, {why}")
    return UNFINISHED if unfinished else GOOD


def _why(mark: marks.Mark) -> str:
    return f"{mark.waiting} part(s) wait for a person" if mark.score is not None else mark.status


def write_dashboard(given: Namespace, classroom: Classroom) -> int:
    """Write the class's page."""
    template = load(given.assignment, given.exams)
    with Database(classroom.db_url) as database:
        found = marks.read(classroom, database, template)
        with database.reading() as connection:
            attempts = ledger.newest(connection, template.assignment)
    _write(classroom, f"dashboard-{template.assignment}.html", dashboard.page(template, found, attempts))
    return GOOD


def status(given: Namespace, classroom: Classroom) -> int:
    """Say how everybody stands."""
    found = _marks(classroom, load(given.assignment, given.exams))
    for state in marks.states():
        if count := sum(mark.status == state for mark in found):
            print(f"  {count:6,}  {state}")
    for mark in marks.unfinished(found):
        print(f"  {mark.student}: {_why(mark)}. {mark.reason}".rstrip())
    return UNFINISHED if marks.unfinished(found) else GOOD


def export_student(given: Namespace, classroom: Classroom) -> int:
    """Write all that is known about one student."""
    print(privacy.export(classroom, given.student, given.out))
    return GOOD


def erase_student(given: Namespace, classroom: Classroom) -> int:
    """Erase one student."""
    print(f"{privacy.erase(classroom, given.student)} rows and folders erased.")
    return GOOD


COMMANDS: dict[str, Callable[[Namespace, Classroom], int]] = {
    "roster": enter_roster,
    "collect": collect_work,
    "grade": grade,
    "regrade": grade,
    "feedback": feedback,
    "marks": write_marks,
    "dashboard": write_dashboard,
    "status": status,
    "export-student": export_student,
    "erase-student": erase_student,
}
