"""An unmodified formgrader, in a real browser: an instructor opens the most hostile submission, and nothing happens."""

from __future__ import annotations

import json
import os
import socket
import sqlite3
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent / "attacks"))
from trap_exam import TRAP, honest, write_source
from trap_papers import ACTIVE, MARKDOWN, PAGES, Attack

from lantern_grading import roster, run, sandboxed
from lantern_grading.classroom import Classroom
from lantern_grading.database import Database
from lantern_grading.sandbox import Limits
from lantern_grading.sandboxed import SandboxGrader
from lantern_grading.template import load

pytestmark = [pytest.mark.grading, pytest.mark.browser]
TAGS = ("script", "svg", "iframe", "object", "embed", "form", "base", "meta", "style", "link", "img")
TOKEN = "for-this-test-only"
CONFIG = """
c = get_config()
c.CourseDirectory.root = {root!r}
c.CourseDirectory.db_url = {url!r}
c.CourseDirectory.source_directory = {source!r}
"""
WORST = Attack(
    answers={
        "t1": PAGES["an active error"].answers["t1"],
        "t2": f"def scale(*a):\n    return {ACTIVE!r}\nnoted = scale",
    },
    before=tuple(source for attack in PAGES.values() for source in attack.before),
    essay=MARKDOWN,
    files=PAGES["files with active names"].files,
)


@dataclass
class Seen:
    """What a page did."""

    hosts: set[str] = field(default_factory=set)
    sent: list[str] = field(default_factory=list)  # requests that change something
    dialogs: list[str] = field(default_factory=list)
    tags: dict[str, int] = field(default_factory=dict)
    text: str = ""


def changes(course: Path) -> list[tuple[object, ...]]:
    connection = sqlite3.connect(course / "gradebook.db")
    try:
        scores = connection.execute("select id, auto_score, manual_score, extra_credit, needs_manual_grade from grade")
        return sorted(scores) + sorted(connection.execute("select id, auto_comment, manual_comment from comment"))
    finally:
        connection.close()


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Path:
    top = tmp_path_factory.mktemp("formgrader")
    source, folder = write_source(top / "source"), top / "class"
    for student, attack in {"ada": None, "eve": WORST}.items():
        files = {f"{TRAP}.ipynb": json.dumps(honest()).encode() if attack is None else attack.content()}
        for name, content in {**(attack.files if attack else {}), **files}.items():
            path = folder / "submitted" / student / TRAP / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
    limits = Limits(cell_seconds=3.0, total_seconds=60.0)
    try:
        report = run.grade(Classroom.open(folder), load(TRAP, source), SandboxGrader.of(TRAP, source, limits=limits))
    finally:
        sandboxed.close()
    assert report.clean, report.table()
    with Database(f"sqlite:///{folder / 'gradebook.db'}") as database:
        eve = roster.Person(
            "eve", '"><img src=x onerror=alert(2)>', "<script>alert(3)</script>", "<svg onload=alert(4)>"
        )
        database.write(lambda connection: roster.enter(connection, [eve]))
    config = CONFIG.format(root=str(folder), url=f"sqlite:///{folder / 'gradebook.db'}", source=str(source))
    (folder / "nbgrader_config.py").write_text(config, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def server(course: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Start the server with formgrader as an instructor would; return its address."""
    home = tmp_path_factory.mktemp("home")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    extensions = {"nbgrader.server_extensions.formgrader": True, "jupyterlab": False, "notebook": False}
    command = [
        sys.executable, "-m", "jupyter_server", "--no-browser", "--allow-root", f"--port={port}", "--ip=127.0.0.1",
        f"--IdentityProvider.token={TOKEN}", f"--ServerApp.root_dir={course}", "--ServerApp.port_retries=0",
        f"--ServerApp.jpserver_extensions={extensions!r}",
    ]  # fmt: skip
    environment = {**os.environ, "HOME": str(home), "JUPYTER_CONFIG_DIR": str(home), "JUPYTER_DATA_DIR": str(home)}
    log = (home / "log").open("wb")
    process = subprocess.Popen(command, cwd=course, env=environment, stdout=log, stderr=log)
    address = f"http://127.0.0.1:{port}"
    try:
        deadline = time.monotonic() + 90
        while True:
            try:
                urllib.request.urlopen(f"{address}/api", timeout=2).close()
                break
            except OSError:
                if process.poll() is not None or time.monotonic() > deadline:
                    pytest.fail((home / "log").read_text()[-3000:])
                time.sleep(0.3)
        yield address
    finally:
        process.terminate()
        process.wait(20)
        log.close()


@pytest.fixture(scope="module")
def look(server: str, course: Path, missing: Callable[[str], None]) -> Iterator[Callable[[str], Seen]]:
    """Return what opens a page of formgrader, logged in, and says what the page did."""
    from lantern_book.look import find_chromium
    from playwright.sync_api import Route, sync_playwright

    chromium = find_chromium()
    if chromium is None:
        missing("no Chromium on the path or in LANTERN_CHROMIUM")
        return
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=str(chromium), args=["--no-sandbox"])
        context = browser.new_context()

        def open_page(path: str) -> Seen:
            seen, page = Seen(), context.new_page()

            def pass_on(route: Route) -> None:
                host = urlsplit(route.request.url).netloc
                seen.hosts.add(host)
                if route.request.method != "GET":
                    seen.sent.append(f"{route.request.method} {route.request.url}")
                route.continue_() if host == urlsplit(server).netloc else route.abort()

            page.route("**/*", pass_on)
            page.on("dialog", lambda dialog: (seen.dialogs.append(dialog.message), dialog.dismiss()))
            mark = "&" if "?" in path else "?"
            answer = page.goto(f"{server}{path}{mark}token={TOKEN}", wait_until="domcontentloaded", timeout=60_000)
            assert answer is not None
            assert answer.status == 200, path
            page.wait_for_timeout(2500)
            seen.tags = {tag: page.locator(f"#notebook-container {tag}").count() for tag in TAGS}
            seen.text = page.inner_text("body")
            seen.tags["canary"] = page.evaluate("Object.keys(window).filter(n => n.startsWith('canary')).length")
            seen.tags["handlers"] = page.evaluate(
                "[...document.querySelectorAll('*')].filter(e => [...e.attributes].some("
                "a => a.name.startsWith('on') && a.value.includes('alert'))).length"
            )
            page.close()
            return seen

        yield open_page
        browser.close()


def submission(course: Path, student: str) -> str:
    query = """select n.id from submitted_notebook n join submitted_assignment a on n.assignment_id = a.id
        where a.student_id = ?"""
    connection = sqlite3.connect(course / "gradebook.db")
    try:
        return str(connection.execute(query, (student,)).fetchone()[0])
    finally:
        connection.close()


def test_opening_the_most_hostile_submission_does_nothing(look: Callable[[str], Seen], course: Path) -> None:
    before = changes(course)
    good = look(f"/formgrader/submissions/{submission(course, 'ada')}/")
    bad = look(f"/formgrader/submissions/{submission(course, 'eve')}/")
    assert "alert(1)" in bad.text  # it is there to be read
    assert "evil.example" in bad.text
    assert bad.dialogs == []
    assert bad.sent == []
    # Formgrader's own template asks a public host for MathJax, whatever is opened; the submission adds no host.
    assert bad.hosts == good.hosts
    assert "evil.example" not in bad.hosts
    assert (bad.tags["canary"], bad.tags["handlers"]) == (0, 0)
    for tag in TAGS:
        assert bad.tags[tag] == good.tags[tag], tag
    assert changes(course) == before


def test_the_lists_do_nothing_with_a_hostile_name(look: Callable[[str], Seen], course: Path) -> None:
    before = changes(course)
    for path in (f"/formgrader/gradebook/{TRAP}/{TRAP}", "/formgrader/manage_students"):
        seen = look(path)
        assert (seen.dialogs, seen.sent, seen.tags["canary"]) == ([], [], 0), path
        assert not {host for host in seen.hosts if "evil" in host}
    assert changes(course) == before
