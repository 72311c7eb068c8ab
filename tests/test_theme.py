"""What the theme's pages load, on a tiny book built by the command that builds the course."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.book

ROOT = Path(__file__).resolve().parent.parent
TINY = ROOT / "tests/planted/tiny"
ICON_FONT = re.compile(r"fontawesome|fa-solid-900")


def build(root: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "lantern_book", "--root", str(root), "build"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        cwd=root,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny book with the course's settings, templates and static files, built."""
    root = tmp_path_factory.mktemp("theme")
    shutil.copytree(TINY, root, dirs_exist_ok=True)
    shutil.copy(ROOT / "_config.yml", root / "_config.yml")
    (root / "book/references.bib").touch()
    for folder in ("_static", "_templates"):
        shutil.copytree(ROOT / "book" / folder, root / "book" / folder, dirs_exist_ok=True)
    build(root)
    return root


def test_a_page_links_nothing_that_is_not_there(book: Path) -> None:
    html = book / "_build/html"
    for page in html.rglob("*.html"):
        for link in re.findall(r'(?:src|href)="([^"#?]+)', page.read_text()):
            if "://" not in link and not link.startswith("mailto:"):
                assert (page.parent / link).exists(), f"{page.name} links {link}"


def test_no_page_loads_from_another_host(book: Path) -> None:
    for page in (book / "_build/html").rglob("*.html"):
        loads = re.findall(r'<(?:script|img|iframe)[^>]*\ssrc="([^"]+)"|<link[^>]*\shref="([^"]+)"', page.read_text())
        assert [pair for pair in loads if "//" in "".join(pair)] == []


def test_scripts_of_others_and_icon_fonts_are_gone(book: Path) -> None:
    static = book / "_build/html/_static"
    assert [path for path in static.rglob("*") if ICON_FONT.search(path.name)] == []
    assert list(static.rglob("*.map")) == []
    page = (book / "_build/html/index.html").read_text()
    for script in ("thebe", "design-tabs", "vega.min.js", "explorable.js", "steps.js", "searchindex.js"):
        assert script not in page, f"a page without need for it links {script}"


def test_page_sources_are_not_published(book: Path) -> None:
    assert not (book / "_build/html/_sources").exists()


def test_a_changed_style_sheet_reaches_every_page(book: Path) -> None:
    page = book / "_build/html/index.html"
    before = re.search(r"lantern\.css\?v=\w+", page.read_text())
    sheet = book / "book/_static/lantern.css"
    sheet.write_text(sheet.read_text() + "\n:root { --changed: 1 }\n")
    build(book)
    assert "--changed" in (book / "_build/html/_static/lantern.css").read_text()
    after = re.search(r"lantern\.css\?v=\w+", page.read_text())
    assert before
    assert after
    assert before[0] != after[0]
