"""Build the book: execute what changed, run Sphinx with warnings as errors, check what came out.

Sphinx runs in this process, configured by Jupyter Book from ``_config.yml``. Two traps are closed
here. A warm build does not read an unchanged page again, so a page that warned once would pass the
second time: a build that fails leaves no doctrees behind. And a page read before the library
changed would keep its old numbers: the doctrees carry a stamp of all that they depend on.
"""

from __future__ import annotations

import importlib.metadata
import shutil
import sys
import time
from pathlib import Path

from lantern_book.execute import DEFAULT_LIMIT_SECONDS, execute_pages
from lantern_book.project import Project

_STAMP = "lantern-stamp"


def build(project: Project, clean: bool = False, jobs: int = 2, limit_seconds: float = DEFAULT_LIMIT_SECONDS) -> bool:
    """Build the book and print the path to open.

    Parameters
    ----------
    project : Project
        The book.
    clean : bool
        Begin with an empty build folder.
    jobs : int
        Processes that execute pages [count].
    limit_seconds : float
        Time that one page may take [s].

    Returns
    -------
    bool
        Whether every page ran, Sphinx gave no warning and every page was written.

    Raises
    ------
    ValueError
        If Jupyter Book is not of version 1, which alone reads ``_config.yml``.
    """
    started = time.monotonic()
    require_jupyter_book_1(importlib.metadata.version("jupyter-book"))
    if clean and project.build.exists():
        shutil.rmtree(project.build)
    if not execute_pages(project, jobs=jobs, limit_seconds=limit_seconds):
        print("The book was not built: a page failed.", file=sys.stderr)
        return False
    doctrees = project.build / ".doctrees"
    stamp = doctrees / _STAMP
    key = project.reading_key()
    if doctrees.exists() and (not stamp.exists() or stamp.read_text() != key):
        shutil.rmtree(doctrees)
    # Gone while Sphinx runs: whatever stops it, the next build reads every page again.
    stamp.unlink(missing_ok=True)
    passed = _run_sphinx(project, doctrees)
    problems = stale_pages(project) if passed else []
    for problem in problems:
        print(problem, file=sys.stderr)
    if not passed or problems:
        print("The book was not built: see the messages above.", file=sys.stderr)
        return False
    stamp.write_text(key)
    print(f"built {len(project.pages)} pages in {time.monotonic() - started:.1f} s; open:")
    print(project.html / "index.html")
    return True


def require_jupyter_book_1(version: str) -> None:
    """Raise ValueError unless a version of jupyter-book is 1: version 2 would build nothing and exit 0."""
    if version.split(".")[0] != "1":
        raise ValueError(f"jupyter-book must be version 1, got {version!r}; install the versions of the lock file")


def stale_pages(project: Project) -> list[str]:
    """Return a sentence for every page that has no HTML, or HTML older than its source."""
    problems = []
    for name, source in project.pages.items():
        page = project.html / f"{name}.html"
        if not page.is_file():
            problems.append(f"{project.show(source)}: was not written to {project.show(page)}")
        elif page.stat().st_mtime < source.stat().st_mtime:
            problems.append(f"{project.show(source)}: is newer than {project.show(page)}")
    return problems


def _run_sphinx(project: Project, doctrees: Path) -> bool:
    from jupyter_book.sphinx import build_sphinx
    from sphinx.util.console import nocolor

    if not sys.stderr.isatty():
        nocolor()  # type: ignore[no-untyped-call]
    result = build_sphinx(
        project.source,
        project.html,
        noconfig=True,
        path_config=project.config_path,
        confoverrides={
            "external_toc_path": project.toc_path.as_posix(),
            "nitpicky": True,
            "latex_individualpages": False,
        },
        doctreedir=doctrees,
        warningiserror=True,
        keep_going=True,
        quiet=True,
    )
    # Jupyter Book returns the exception, already printed, when Sphinx raised one.
    return result == 0
