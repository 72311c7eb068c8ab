"""The gradebook in PostgreSQL, through nbgrader's own address of a database."""

from __future__ import annotations

import getpass
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent / "graded"))
from small_class import QUIZ, FakeGrader, hand_in, submission, write_source

from lantern_grading import marks, privacy, run
from lantern_grading.classroom import Classroom
from lantern_grading.database import Database
from lantern_grading.template import Template, load

pytestmark = [pytest.mark.grading, pytest.mark.xdist_group("postgres")]


@pytest.fixture(scope="session")
def quiz(tmp_path_factory: pytest.TempPathFactory) -> Template:
    return load(QUIZ, write_source(tmp_path_factory.mktemp("source")))


def programs() -> Path | None:
    """Find Debian's PostgreSQL: its server programs lie beside the path."""
    places = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    found = shutil.which("initdb")
    places += [Path(found).resolve().parent] if found else []
    return next((place for place in places if (place / "initdb").exists() and (place / "pg_ctl").exists()), None)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory, missing: Callable[[str], None]) -> Iterator[str]:
    place = programs()
    if place is None:
        missing("no PostgreSQL; on Debian: apt-get install postgresql")
        return
    # PostgreSQL refuses to run as root, and its socket's path must be short.
    base = Path(subprocess.run(["mktemp", "-d"], capture_output=True, text=True, check=True).stdout.strip())
    data = base / "data"
    owner = "postgres" if os.getuid() == 0 else getpass.getuser()
    prefix = ["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups"] if os.getuid() == 0 else []
    if prefix:
        shutil.chown(base, owner)

    def start(program: str, *arguments: str) -> None:
        command = [*prefix, str(place / program), "-D", str(data), *arguments]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=120, cwd=base)

    start("initdb", "-U", "grader", "-A", "trust", "-N")
    options = f"-c listen_addresses='' -c unix_socket_directories={base} -c fsync=off"
    start("pg_ctl", "-w", "-o", options, "-l", str(base / "log"), "start")
    try:
        yield f"postgresql+psycopg://grader@/postgres?host={base}"
    finally:
        start("pg_ctl", "-m", "immediate", "stop")
        shutil.rmtree(base)


def test_a_class_whose_gradebook_is_in_postgresql(url: str, quiz: Template, tmp_path: Path) -> None:
    course = tmp_path / "class"
    course.mkdir()
    (course / "class.toml").write_text(f'gradebook = "{url}"\n')
    hand_in(course, "ada")
    hand_in(course, "bob", submission(one="wrong"))
    hand_in(course, "gus", b"")
    classroom = Classroom.open(course)
    run.grade(classroom, quiz, FakeGrader.of(quiz))
    again = run.grade(classroom, quiz, FakeGrader.of(quiz))
    assert (again.graded_now, again.skipped) == (0, 3)
    assert not (course / "gradebook.db").exists()
    with Database(url) as database:
        found = {mark.student: mark.score for mark in marks.read(classroom, database, quiz)}
        assert found == {"ada": 6, "bob": 2, "gus": None}
        with database.engine.connect() as other:
            other.exec_driver_sql("SELECT pg_advisory_lock(27557415)")
            with pytest.raises(ValueError, match="another machine"):
                run.grade(classroom, quiz, FakeGrader.of(quiz))
    # nbgrader itself reads it.
    from nbgrader.api import Gradebook

    with Gradebook(url) as book:
        assert book.find_submission(QUIZ, "ada").score == 6
        assert book.find_assignment(QUIZ).max_score == 10
    assert privacy.erase(classroom, "ada") > 0
    with Gradebook(url) as book:
        assert [student.id for student in book.students] == ["bob", "gus"]
