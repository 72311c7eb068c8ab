"""What several test modules share."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from lantern_book.look import Reader

# Tests run beside each other, one process a core: threads of a small matrix product would only wait for each other.
# Set before numpy is loaded, which looks once.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Programs that a test starts and papers that it makes, with a path of their own.
collect_ignore = ["attacks", "graded", "robust", "swept"]

HTML = Path(os.environ.get("LANTERN_HTML") or Path(__file__).resolve().parent.parent / "_build/html")


def published(name: str) -> list[dict[str, Any]]:
    """Read a list of published numbers; see ``test_published_a.py``."""
    text = (Path(__file__).parent / "data" / f"{name}.json").read_text(encoding="utf-8")
    entries: list[dict[str, Any]] = json.loads(text)
    return entries


def holds(entry: dict[str, Any], compute: dict[str, Callable[..., float]]) -> None:
    """Compare one published number with what the library computes."""
    got = compute[entry["compute"]](**entry["inputs"]) / entry["scale"]
    where = f"{entry['source']}, {entry['what']}: printed {entry['printed']}, computed {got!r}"
    if entry["relation"] == "below":
        assert got < entry["expected"], where
    elif entry["relation"] == "above":
        assert got >= entry["expected"], where
    else:
        assert abs(got - entry["expected"]) <= entry["tolerance"], where


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give a test every number of its module's ``PUBLISHED`` list, or every figure of ``DIAGRAMS`` and ``PLOTS``."""
    for argument, catalogue in (("any_diagram", "DIAGRAMS"), ("any_plot", "PLOTS")):
        if argument in metafunc.fixturenames:
            figures = getattr(metafunc.module, catalogue)
            metafunc.parametrize(argument, figures.values(), ids=figures)
    if "entry" in metafunc.fixturenames:
        entries = published(metafunc.module.PUBLISHED)
        metafunc.parametrize("entry", entries, ids=[entry["id"] for entry in entries])


@pytest.fixture
def hold() -> Callable[[dict[str, Any], dict[str, Callable[..., float]]], None]:
    """Return the comparison of a published number with the library."""
    return holds


@pytest.fixture
def entries(request: pytest.FixtureRequest) -> list[dict[str, Any]]:
    """Return all numbers of the module's ``PUBLISHED`` list."""
    return published(request.module.PUBLISHED)


@pytest.fixture
def sound_diagram() -> Callable[[Callable[[], Any]], None]:
    """Return what holds for every diagram; see ``figure_rules.py``."""
    from tests.figure_rules import diagram_is_sound

    return lambda make: diagram_is_sound(make())


@pytest.fixture
def sound_plot() -> Callable[[Callable[[], Any]], None]:
    """Return what holds for every plot; see ``figure_rules.py``."""
    from tests.figure_rules import plot_is_sound

    return lambda make: plot_is_sound(make().to_dict())


@pytest.fixture(scope="session")
def missing() -> Callable[[str], None]:
    """Return what a test does without something it needs: skip, or fail in CI, where nothing may be missing."""

    def say(what: str) -> None:
        if os.environ.get("CI"):
            pytest.fail(f"{what} (needed in CI)")
        pytest.skip(what)

    return say


@pytest.fixture(scope="session")
def outside() -> Callable[[str], Path]:
    """Return a finder of public data that the project may not hold: traces and logs under a licence of their own.

    They lie in the folder that LANTERN_DATA names, or in one called ``shared`` beside the checkout. Without them the
    test is skipped, in CI too: what the project promises is tested on data of its own.
    """
    folder = Path(os.environ.get("LANTERN_DATA") or Path(__file__).resolve().parents[2] / "shared")

    def find(name: str) -> Path:
        if not (folder / name).exists():
            pytest.skip(f"no {name} in the folder of public data; name the folder in LANTERN_DATA")
        return folder / name

    return find


@pytest.fixture(scope="session")
def site(missing: Callable[[str], None]) -> Path:
    """Return the folder of the built book."""
    if not (HTML / "index.html").is_file():
        missing("no built book; run `make book` first")
    return HTML


@pytest.fixture(scope="module")
def reader(site: Path, missing: Callable[[str], None]) -> Iterator[Reader]:
    """Return a browser that reads the built book with the network closed."""
    from lantern_book.look import Reader, find_chromium

    chromium = find_chromium()
    if chromium is None:
        missing("no Chromium on the path or in LANTERN_CHROMIUM")
        return
    with Reader(site, chromium) as reader:
        yield reader
