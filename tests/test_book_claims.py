"""Planted failures: a tiny book with one fault must not build, and the message must say where.

Each test breaks a copy of the correct book in ``tests/planted/tiny`` and runs the same command that
builds the course. Line numbers are looked up in the broken file, not taken from the code.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace

import pytest

import lantern_lib

pytestmark = pytest.mark.book

TINY = Path(__file__).parent / "planted" / "tiny"
ONE, TWO, INDEX = "book/a/one.md", "book/a/two.md", "book/index.md"


class Book:
    """A copy of the tiny book that can be broken and built."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def replace(self, page: str, old: str, new: str) -> int:
        """Put ``new`` where ``old`` stands; return the line on which it now begins."""
        path = self.root / page
        text = path.read_text("utf8")
        assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in {page}"
        path.write_text(text.replace(old, new), "utf8")
        return text[: text.index(old)].count("\n") + 1

    def run(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run a command of the book; its output is one text."""
        return subprocess.run(
            [sys.executable, "-m", "lantern_book", "--root", str(self.root), *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
            check=False,
            # Elsewhere than the checkout: Python would import from there first.
            cwd=self.root,
            env={**os.environ, "SOURCE_DATE": "2026-06-01", **environment},
        )

    def html(self, page: str) -> str:
        return (self.root / "_build/html" / page).read_text("utf8")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Book:
    """The correct book, built once."""
    root = tmp_path_factory.mktemp("books") / "tiny"
    shutil.copytree(TINY, root)
    book = Book(root)
    result = book.run("build")
    assert result.returncode == 0, result.stdout
    assert re.search(r"^a/one  ok  3 claims hold  \d+\.\d s$", result.stdout, re.MULTILINE)
    assert result.stdout.rstrip().endswith(str(root / "_build/html/index.html"))
    return book


@pytest.fixture
def book(built: Book, tmp_path: Path) -> Book:
    """A copy with its results, so that only what a test breaks runs again."""
    shutil.copytree(built.root, tmp_path / "tiny")
    return Book(tmp_path / "tiny")


@pytest.fixture
def warm_book(book: Book) -> Book:
    """A copy that was built where it stands; Sphinx reads every page of a book that moved."""
    result = book.run("build")
    assert result.returncode == 0, result.stdout
    return book


def assert_fails(book: Book, command: str, page: str, line: int, *words: str) -> str:
    """Run a command that must fail and name file and line in one line with all the words."""
    result = book.run(*command.split())
    assert result.returncode == 1, result.stdout
    place = re.compile(rf"{re.escape(page)}:{line}: .*" + ".*".join(map(re.escape, words)))
    assert place.search(result.stdout), result.stdout
    return result.stdout


# ---- the seven faults -------------------------------------------------------------------------


def test_wrong_printed_number(book: Book) -> None:
    line = book.replace(TWO, "14.3 ms", "14.2 ms")
    assert_fails(book, "build", TWO, line, "one-step", "'14.2 ms'", "'14.3 ms'")


def test_unknown_id(book: Book) -> None:
    line = book.replace(INDEX, "<one-step>", "<one-stop>")
    assert_fails(book, "build", INDEX, line, "unknown claim 'one-stop'")


def test_unused_claim(book: Book) -> None:
    line = book.replace(ONE, 'claim("one-drawn", 64, "64")', 'claim("one-spare", 65, "65")')
    output = assert_fails(book, "build", ONE, line, "no page shows claim 'one-spare'")
    assert "unknown claim 'one-drawn'" in output, "the figure still lists it"


def test_failing_claim(book: Book) -> None:
    line = book.replace(ONE, 'weight_bytes / bandwidth, "14.3 ms"', 'weight_bytes / bandwidth, "15.3 ms"')
    output = assert_fails(book, "execute", ONE, line, "ClaimError", "one-step", "'15.3 ms'", "14.3002")
    assert f"> {line:4d} | claim(" in output, "the cell is shown, with its failing line"


def test_cell_that_raises(book: Book) -> None:
    line = book.replace(ONE, "bandwidth = 9.86e12", "bandwidth = 1 / 0")
    assert_fails(book, "execute", ONE, line, "ZeroDivisionError: division by zero")


def test_cell_that_hangs(book: Book) -> None:
    book.replace(ONE, "bandwidth = 9.86e12", "while True: pass")
    first = (book.root / ONE).read_text().splitlines().index("from lantern_lib.claims import claim") + 1
    assert_fails(book, "execute --limit 2", ONE, first, "still running", "2 s")


def test_bare_number(book: Book) -> None:
    line = book.replace(TWO, "Text alone", "Text of 14 ms alone")
    assert_fails(book, "prose", TWO, line, "14 ms")
    assert book.run("prose", str(book.root / ONE)).returncode == 0


# ---- further faults ---------------------------------------------------------------------------


def test_other_faults_of_roles_and_facts(book: Book) -> None:
    """Seven faults that Sphinx alone finds, in one build: each has its own message."""
    same_id = book.replace(ONE, 'claim("one-drawn", 64, "64")', 'claim("one-drawn", 64, "64")  # first')
    text = (book.root / ONE).read_text().split("# One step")[0]
    cell = "# Three\n\n```{code-cell} ipython3\n:tags: [parameters]\nfrom lantern_lib.claims import claim\n\n"
    (book.root / "book/a/two.md").write_text(text + cell + 'claim("one-drawn", 64, "64")\n```\n')
    book.replace(INDEX, "$98.32 <gpu-hour>", "$99 <gpu-hour>")
    with (book.root / INDEX).open("a") as page:
        page.write("\nA role {claim}`without id`, a fact {fact}`5 <no-such-fact>`.\n")
    with (book.root / "book/facts.toml").open("a") as facts:
        facts.write('\n[spare]\ntext = "5"\nsource = "x"\ndate = 2026-01-01\nstatus = "read"\nkind = "spec"\n')
        facts.write('\n[broken]\ntext = "5"\nsource = "x"\ndate = 2026-01-01\nstatus = "rumour"\nkind = "spec"\n')
    output = book.run("build").stdout
    number = {line: n for n, line in enumerate((book.root / INDEX).read_text().splitlines(), 1)}
    last = max(number.values())
    facts_lines = (book.root / "book/facts.toml").read_text().splitlines()
    for page, line, words in (
        (TWO, 11, rf"claim 'one-drawn' is also made on page 'a/one' \(line {same_id}\)"),
        (INDEX, 3, r"fact 'gpu-hour': the page prints '\$99', the fact is '\$98.32'"),
        (INDEX, last, "claim role 'without id' names no id"),
        (INDEX, last, "unknown fact 'no-such-fact'"),
        ("book/facts.toml", facts_lines.index("[spare]") + 1, "no page shows fact 'spare'"),
        ("book/facts.toml", facts_lines.index("[broken]") + 1, "fact 'broken': status must be one of read, "),
    ):
        assert re.search(rf"{page}:{line}: WARNING: {words}", output), (page, line, words, output)


def test_page_without_parameters_cell(book: Book) -> None:
    book.replace(ONE, ":tags: [parameters]", ":tags: [hide-input]")
    assert_fails(book, "execute", ONE, 1, "no code cell is tagged `parameters`")


# ---- the correct book, and books that were correct --------------------------------------------


def test_warm_build_of_a_broken_page_fails_each_time_and_recovers(warm_book: Book) -> None:
    line = warm_book.replace(TWO, "14.3 ms", "14.2 ms")
    for _ in range(2):
        output = assert_fails(warm_book, "build", TWO, line, "one-step")
        assert "a/one  unchanged  3 claims hold" in output
    warm_book.replace(TWO, "14.2 ms", "14.3 ms")
    assert warm_book.run("build").returncode == 0


def test_warm_build_of_a_failing_cell_fails(book: Book) -> None:
    line = book.replace(ONE, 'weight_bytes, "141 GB"', 'weight_bytes, "142 GB"')
    assert_fails(book, "build", ONE, line, "ClaimError", "one-weights")


def test_sphinx_warning_is_not_forgotten_by_a_warm_build(book: Book) -> None:
    line = book.replace(TWO, "Text alone", "See {ref}`nowhere`. Text alone")
    for _ in range(2):
        assert_fails(book, "build", TWO, line, "nowhere")


def test_changed_claim_is_written_anew_on_the_page_that_borrows_it(warm_book: Book) -> None:
    # Not on index.html: Sphinx writes the parent of a changed page again anyway.
    assert "weight_bytes * 1" not in warm_book.html("a/two.html")
    warm_book.replace(ONE, 'weight_bytes, "141 GB"', 'weight_bytes * 1, "141 GB"')
    assert warm_book.run("build").returncode == 0
    assert "weight_bytes * 1" in warm_book.html("a/two.html")


def test_changed_library_leaves_no_old_number(book: Book) -> None:
    library = book.root / "lantern_lib"
    shutil.copytree(Path(lantern_lib.__file__).parent, library)
    planted = library / "planted.py"
    book.replace(ONE, "bandwidth = 9.86e12", "from lantern_lib.planted import bandwidth")
    for bandwidth in (9.86e12, 9.85e12):
        planted.write_text(f"bandwidth = {bandwidth!r}\n")
        result = book.run("build", PYTHONPATH=str(book.root))
        assert result.returncode == 0, result.stdout
        assert repr(141e9 / bandwidth) in book.html("a/one.html")
        assert repr(141e9 / bandwidth) in book.html("index.html")


def test_changed_facts_run_every_page_again(warm_book: Book) -> None:
    warm_book.replace("book/facts.toml", '"Price list of a provider"', '"Another price list"')
    result = warm_book.run("build")
    assert result.returncode == 0, result.stdout
    assert re.search(r"^a/one  ok ", result.stdout, re.MULTILINE)
    assert "Another price list" in warm_book.html("index.html")


def test_changed_data_run_every_page_again(warm_book: Book) -> None:
    folder = warm_book.root / "book/data"
    folder.mkdir()
    (folder / "counts.json").write_text("[1]", "utf8")
    result = warm_book.run("build")
    assert result.returncode == 0, result.stdout
    assert re.search(r"^a/one  ok ", result.stdout, re.MULTILINE)


def test_what_parallel_readers_found_is_merged() -> None:
    from lantern_book.claims import ClaimCollector, PageClaim
    from lantern_book.references import Use, UseCollector

    ours, theirs = SimpleNamespace(), SimpleNamespace()
    theirs.lantern_claims = {name: [PageClaim({"id": name}, name, 1)] for name in ("a", "b")}
    theirs.lantern_uses = {name: [Use("claim", name, name, 1)] for name in ("a", "b")}
    for collector, kept in ((ClaimCollector(), "lantern_claims"), (UseCollector(), "lantern_uses")):
        collector.merge_other(None, ours, {"a", "empty"}, theirs)
        assert getattr(ours, kept) == {"a": getattr(theirs, kept)["a"]}
        collector.clear_doc(None, ours, "a")
        assert getattr(ours, kept) == {}


def test_sphinx_finds_the_executed_page_in_the_cache(built: Book) -> None:
    executed = list((built.root / "_build/.jupyter_cache/executed").iterdir())
    assert len(executed) == 1, "a page that Sphinx had to execute again would have left a second entry"


def test_notebooks_run_with_one_line_each(tmp_path: Path, built: Book) -> None:
    cells = [
        {"cell_type": "code", "source": "x = 1", "metadata": {"tags": ["parameters"]}},
        {"cell_type": "code", "source": "y = x\nprint(y / 0)", "metadata": {}},
    ]
    for cell in cells:
        cell |= {"execution_count": None, "outputs": []}
    for name, kept in (("good", cells[:1]), ("bad", cells)):
        notebook = {"cells": kept, "metadata": {}, "nbformat": 4, "nbformat_minor": 4}
        notebook["metadata"] = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}
        (tmp_path / f"{name}.ipynb").write_text(json.dumps(notebook))
    result = built.run("execute", "--notebooks", str(tmp_path / "good.ipynb"), str(tmp_path / "bad.ipynb"))
    assert result.returncode == 1
    assert re.search(r"good  ok  0 claims hold  \d+\.\d s$", result.stdout, re.MULTILINE)
    assert re.search(r"bad\.ipynb: cell 2, line 2: ZeroDivisionError", result.stdout)


class Popovers(HTMLParser):
    """Collect the buttons with what they open, and the text of every popover."""

    def __init__(self) -> None:
        super().__init__()
        self.targets: list[tuple[str, str]] = []
        self.popovers: dict[str, str] = {}
        self.labels: dict[str, str] = {}
        self._open: str | None = None
        self._depth = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {key: value or "" for key, value in attrs}
        if tag == "button" and "popovertarget" in given:
            assert given["type"] == "button"
            self.targets.append((given["class"], given["popovertarget"]))
        if "popover" in given:
            assert (given["role"], given["class"]) == ("dialog", "lt-popover")
            assert given["id"] not in self.popovers, "an id stands once on a page"
            self._open, self._depth = given["id"], 0
            self.popovers[given["id"]], self.labels[given["id"]] = "", given["aria-label"]
        self._depth += tag == "div"

    def handle_endtag(self, tag: str) -> None:
        self._depth -= tag == "div"
        if self._open is not None and self._depth == 0:
            self._open = None

    def handle_data(self, data: str) -> None:
        if self._open is not None:
            self.popovers[self._open] += data + "\n"


def popovers_of(page: str) -> Popovers:
    found = Popovers()
    found.feed(page)
    return found


def test_popover_shows_the_derivation(built: Book) -> None:
    found = popovers_of(built.html("a/one.html"))
    # Heading, paragraph, caption; table, admonition title and text, dropdown title and text.
    assert found.targets.count(("lt-claim", "lt-claim-one-step")) == 3
    assert found.targets.count(("lt-claim", "lt-claim-one-weights")) == 5
    assert set(found.popovers) == {"lt-claim-one-step", "lt-claim-one-weights"}
    text = found.popovers["lt-claim-one-step"]
    assert "weight_bytes / bandwidth" in text
    assert repr(141e9 / 9.86e12) in text
    assert "seconds" in text
    assert "All cards stream <at once>." in text
    assert "this page" in text
    assert "14.3 ms" in found.labels["lt-claim-one-step"]


def test_claim_of_another_page_links_there_and_links_stay_plain(built: Book) -> None:
    assert '<a href="a/one.html">One step takes 14.3 ms</a>' in built.html("index.html")
    two = built.html("a/two.html")
    assert popovers_of(two).targets == [("lt-claim", "lt-claim-one-weights")]
    assert "a link to 14.3 ms" in re.sub(r"<[^>]+>", "", two)


def test_old_price_shows_its_date(built: Book) -> None:
    page = built.html("index.html")
    assert ">$98.32 (as of 3 November 2024)</button>" in page
    assert "https://example.org/prices" in page


def test_price_within_its_age_shows_no_date(warm_book: Book) -> None:
    """No file changes but the date does, so the page is written anew."""
    assert warm_book.run("build", SOURCE_DATE="2025-01-01").returncode == 0
    assert ">$98.32</button>" in warm_book.html("index.html")


def test_ledgers_are_published(built: Book) -> None:
    claims = json.loads(built.html("claims.json"))
    assert list(claims) == ["one-drawn", "one-step", "one-weights"]
    step = claims["one-step"]
    assert step["value"] == 141e9 / 9.86e12
    assert (step["printed"], step["unit"], step["page"]) == ("14.3 ms", "seconds", "a/one")
    assert step["shown_on"] == ["a/one", "a/two", "index"]
    assert step["holds"] is True
    facts = json.loads(built.html("facts.json"))
    assert facts["gpu-hour"]["text"] == "$98.32"
    assert facts["gpu-hour"]["date"] == "2024-11-03"
