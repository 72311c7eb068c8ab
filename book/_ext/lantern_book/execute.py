"""Execute the book's pages in parallel, once, into the cache that the Sphinx build reads.

The cache knows a page by its code cells. What the cells depend on besides (the library, the facts,
the lock file) is kept as a key beside the cache; when it differs the cache is emptied, so that
no page can show a number of an older library. Each page is cached as soon as it is done, so an
interrupted run goes on where it stopped.
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
from jupyter_cache import get_cache
from jupyter_cache.base import CacheBundleIn
from myst_nb.core.config import NbParserConfig
from myst_nb.core.read import create_nb_reader

from lantern_book import skip_slow_grammar
from lantern_book.notebook import Failure, Outcome, Task, run
from lantern_book.project import Project

DEFAULT_LIMIT_SECONDS = 120.0
_KEY_FILE = "lantern-key"


@dataclass
class _Tally:
    executed: int = 0
    unchanged: int = 0
    failed: int = 0
    claims: int = 0


def execute_pages(
    project: Project,
    pages: Sequence[str] = (),
    jobs: int = 2,
    limit_seconds: float = DEFAULT_LIMIT_SECONDS,
) -> bool:
    """Execute the pages that changed and print one line for each page.

    Parameters
    ----------
    project : Project
        The book.
    pages : sequence of str
        Names (``a/a3`` or ``a3``) or files; none means every page of the table of contents.
    jobs : int
        Processes [count].
    limit_seconds : float
        Time that one page may take [s].

    Returns
    -------
    bool
        Whether every page ran without an error.

    Raises
    ------
    ValueError
        If a page is not in the table of contents.
    """
    started = time.monotonic()
    cache = _open_cache(project)
    tally = _Tally()
    tasks: list[Task] = []
    for name, path in _chosen(project, pages).items():
        task = _page_task(project, name, path, limit_seconds)
        if isinstance(task, Failure):
            _report(project, path, Outcome(name, 0.0, failure=task), tally)
        elif task is not None and (cached := _cached(cache, task)) is not None:
            tally.unchanged += 1
            tally.claims += count_claims(cached)
            print(f"{name}  unchanged  {_claims_text(count_claims(cached))}", flush=True)
        elif task is not None:
            tasks.append(task)
    for task, outcome in _run_all(tasks, jobs):
        if outcome.failure is None:
            _store(cache, task, outcome)
        _report(project, task.path, outcome, tally)
    print(
        f"pages: {tally.executed} executed, {tally.unchanged} unchanged, {tally.failed} failed;"
        f" {_claims_text(tally.claims)}; {time.monotonic() - started:.1f} s",
        flush=True,
    )
    return tally.failed == 0


def execute_notebooks(
    project: Project,
    paths: Iterable[Path],
    jobs: int = 2,
    limit_seconds: float = DEFAULT_LIMIT_SECONDS,
) -> bool:
    """Execute notebooks without a cache and print one line for each; see :func:`execute_pages`."""
    tally = _Tally()
    tasks: list[Task] = []
    for path in paths:
        path = path.resolve()
        if not path.is_file():
            raise ValueError(f"notebook {str(path)!r} does not exist")
        notebook = nbformat.read(path, as_version=4)
        name = project.show(path).removesuffix(".ipynb")
        if not _has_parameters(notebook):
            _report(project, path, Outcome(name, 0.0, failure=_no_parameters(1)), tally)
            continue
        tasks.append(Task(name, path, nbformat.writes(notebook), limit_seconds))
    for task, outcome in _run_all(tasks, jobs):
        _report(project, task.path, outcome, tally)
    print(f"notebooks: {tally.executed} executed, {tally.failed} failed", flush=True)
    return tally.failed == 0


def count_claims(notebook: Any) -> int:
    """Return how many claims the outputs of a notebook hold; a claim that fails publishes nothing."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    names = [o.get("metadata", {}).get("scrapbook", {}).get("name", "") for o in outputs]
    return len({name for name in names if name.startswith("claim:")})


def _open_cache(project: Project) -> Any:
    """Open the cache; empty it first if what its results depend on has changed."""
    key = project.execution_key()
    stored = project.cache / _KEY_FILE
    if project.cache.exists() and (not stored.exists() or stored.read_text() != key):
        shutil.rmtree(project.cache)
    project.cache.mkdir(parents=True, exist_ok=True)
    stored.write_text(key)
    return get_cache(str(project.cache))


def _chosen(project: Project, wanted: Sequence[str]) -> dict[str, Path]:
    if not wanted:
        return project.pages
    chosen: dict[str, Path] = {}
    for given in wanted:
        found = {
            name: path
            for name, path in project.pages.items()
            if given in (name, Path(name).name) or Path(given).resolve() == path.resolve()
        }
        if not found:
            raise ValueError(f"page {given!r} is not in the table of contents: {', '.join(project.pages)}")
        chosen |= found
    return chosen


def _page_task(project: Project, name: str, path: Path, limit_seconds: float) -> Task | Failure | None:
    """Read a page as myst-nb does; None is a page of text alone."""
    text = path.read_text("utf8")
    reader = create_nb_reader(str(path), project.markdown, NbParserConfig(), text)
    if reader is None:
        return None
    try:
        notebook = reader.read(text)
    except Exception as error:  # the reader's own errors share no base class
        return Failure(f"cannot be read as a notebook: {error}", line=1)
    if not any(cell.cell_type == "code" for cell in notebook.cells):
        return None
    if not _has_parameters(notebook):
        return _no_parameters(1)
    return Task(name, path, nbformat.writes(notebook), limit_seconds, tuple(text.splitlines()))


def _has_parameters(notebook: Any) -> bool:
    return any("parameters" in cell.metadata.get("tags", []) for cell in notebook.cells)


def _no_parameters(line: int) -> Failure:
    return Failure("no code cell is tagged `parameters`; papermill sets values there", line=line)


def _cached(cache: Any, task: Task) -> Any:
    try:
        _, notebook = cache.merge_match_into_notebook(nbformat.reads(task.notebook, as_version=4))
    except KeyError:
        return None
    return notebook


def _store(cache: Any, task: Task, outcome: Outcome) -> None:
    notebook = nbformat.reads(outcome.notebook, as_version=4)
    bundle = CacheBundleIn(notebook, str(task.path), data={"execution_seconds": outcome.seconds})
    cache.cache_notebook_bundle(bundle, check_validity=False, overwrite=True)


def _run_all(tasks: list[Task], jobs: int) -> Iterator[tuple[Task, Outcome]]:
    """Run the tasks in worker processes and yield each as it ends."""
    if not tasks:
        return
    # A kernel warns about frozen modules under some debuggers; that is not the page's fault.
    os.environ.setdefault("PYDEVD_DISABLE_FILE_VALIDATION", "1")
    workers = min(jobs, len(tasks))
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context, initializer=skip_slow_grammar) as pool:
        futures = {pool.submit(run, task): task for task in tasks}
        try:
            for future in as_completed(futures):
                task = futures[future]
                try:
                    yield task, future.result()
                except BrokenProcessPool:
                    yield task, Outcome(task.name, 0.0, failure=Failure("its worker process was ended"))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _report(project: Project, path: Path, outcome: Outcome, tally: _Tally) -> None:
    failure = outcome.failure
    if failure is None:
        tally.executed += 1
        claims = count_claims(nbformat.reads(outcome.notebook, as_version=4))
        tally.claims += claims
        print(f"{outcome.name}  ok  {_claims_text(claims)}  {outcome.seconds:.1f} s", flush=True)
        return
    tally.failed += 1
    place = project.show(path)
    if path.suffix == ".ipynb" and failure.cell_index is not None:
        place += f": cell {failure.cell_index + 1}, line {failure.line}"
    elif failure.line is not None:
        place += f":{failure.line}"
    print(f"{outcome.name}  FAILED  {outcome.seconds:.1f} s\n{place}: {failure.message}")
    for number, line in enumerate(failure.code.splitlines(), failure.first_line):
        mark = ">" if number == failure.line else " "
        print(f"  {mark} {number:4d} | {line}")
    print(end="", flush=True)


def _claims_text(count: int) -> str:
    return f"{count} claim holds" if count == 1 else f"{count} claims hold"
