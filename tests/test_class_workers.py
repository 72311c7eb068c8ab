"""Many workers give what one gives, and one that dies costs its own submission and no other."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

GRADED = str(Path(__file__).resolve().parent / "graded")
sys.path.insert(0, GRADED)
from small_class import QUIZ, FakeGrader, hand_in, submission, write_source  # noqa: E402

from lantern_grading import marks, run  # noqa: E402
from lantern_grading.classroom import Classroom  # noqa: E402
from lantern_grading.database import Database  # noqa: E402
from lantern_grading.template import Template, load  # noqa: E402


@pytest.fixture(scope="session")
def quiz(tmp_path_factory: pytest.TempPathFactory) -> Template:
    return load(QUIZ, write_source(tmp_path_factory.mktemp("source")))


def new_class(folder: Path, size: int, words: dict[int, str]) -> Classroom:
    for number in range(size):
        hand_in(folder, f"s{number:03}", submission(one=words.get(number, "right")))
    return Classroom.open(folder)


def found(classroom: Classroom, quiz: Template) -> dict[str, tuple[str, float | None]]:
    with Database(classroom.db_url) as database:
        return {mark.student: (mark.status, mark.score) for mark in marks.read(classroom, database, quiz)}


def test_processes_give_what_one_gives_and_one_that_dies_harms_no_other(tmp_path: Path, quiz: Template) -> None:
    words = {3: "wrong", 5: "boom", 7: "limit", 9: "nan"}
    here = new_class(tmp_path / "here", 12, words)
    run.grade(here, quiz, FakeGrader.of(quiz))
    expected = found(here, quiz)
    # Another one ends its whole process, which takes the pool along.
    there = new_class(tmp_path / "there", 12, {**words, 6: "die"})
    report = run.grade(there, quiz, FakeGrader.of(quiz), count=2)
    got = found(there, quiz)
    assert got.pop("s006") == ("needs a person", None)
    del expected["s006"]
    assert got == expected
    assert "s006: needs a person. The grader's process was lost" in report.table()


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    distributed = pytest.importorskip("distributed")
    folder = tmp_path_factory.mktemp("dask")
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": "127.0.0.1:0"}
    with (
        distributed.LocalCluster(host="127.0.0.1", local_directory=str(folder), **options) as cluster,
        distributed.Client(cluster) as client,
    ):
        client.run(lambda path: sys.path.insert(0, path), GRADED)
        yield client


@pytest.mark.cluster
@pytest.mark.xdist_group("cluster")
def test_a_cluster_grades_and_a_killed_worker_changes_nothing(client: Any, tmp_path: Path, quiz: Template) -> None:
    words = dict.fromkeys(range(20), "slow") | {3: "wrong"}
    here = new_class(tmp_path / "here", 20, {3: "wrong"})
    run.grade(here, quiz, FakeGrader.of(quiz))
    there = new_class(tmp_path / "there", 20, words)
    diary = tmp_path / "diary"
    victims = list(client.run(os.getpid).values())

    import threading

    def kill() -> None:
        while not diary.exists() or len(diary.read_text().split()) < 3:
            time.sleep(0.01)
        os.kill(victims[0], signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    run.grade(there, quiz, FakeGrader.of(quiz, diary=str(diary)), executor=client.get_executor())
    killer.join()
    assert set(client.run(os.getpid).values()) != set(victims)
    assert found(there, quiz) == found(here, quiz)


def test_the_memory_of_a_run_does_not_grow_with_the_class(tmp_path: Path, quiz: Template) -> None:
    """Jobs are read when there is room for them: at no time are many submissions in memory."""
    from lantern_grading import workers
    from lantern_grading.assess import Job
    from lantern_grading.reading import HandedIn

    open_jobs = most = 0

    def jobs() -> Iterator[Job]:
        nonlocal open_jobs, most
        for number in range(40):
            open_jobs += 1
            most = max(most, open_jobs)
            yield Job(f"s{number}", HandedIn((), ""))

    for _ in workers.results(jobs(), quiz, FakeGrader.of(quiz), count=2):
        open_jobs -= 1
    assert open_jobs == 0
    assert most <= 2 * 2 + 1
