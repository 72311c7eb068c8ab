"""The commands of the book: ``python -m lantern_book build | execute | prose``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from lantern_book import skip_slow_grammar


def main(arguments: list[str] | None = None) -> int:
    """Run a command and return its exit code: 0 passed, 1 failed, 2 misused."""
    options = _parser().parse_args(arguments)
    skip_slow_grammar()
    # Imported here: --help and misuse answer at once, without loading Sphinx.
    from lantern_book.project import Project

    try:
        project = Project(options.root.resolve())
        if options.command == "build":
            from lantern_book.build import build

            return _code(build(project, options.clean, options.jobs, options.limit))
        if options.command == "execute":
            from lantern_book.execute import execute_notebooks, execute_pages

            if options.notebooks:
                return _code(execute_notebooks(project, options.notebooks, options.jobs, options.limit))
            return _code(execute_pages(project, options.pages, options.jobs, options.limit))
        from lantern_book.prose import print_findings

        return _code(print_findings(project, options.files))
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stopped; finished pages are kept", file=sys.stderr)
        return 130


def _code(passed: bool) -> int:
    return 0 if passed else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m lantern_book", description=__doc__)
    parser.add_argument("--root", type=Path, default=Path(), help="the project's folder (default: this one)")
    commands = parser.add_subparsers(dest="command", required=True)
    build = commands.add_parser("build", help="execute what changed, build the book, check that every page is new")
    build.add_argument("--clean", action="store_true", help="begin with an empty build folder")
    execute = commands.add_parser("execute", help="execute the pages that changed, or notebooks")
    execute.add_argument("--pages", nargs="+", default=(), help="names (a/a3 or a3) or files; default: all")
    execute.add_argument("--notebooks", nargs="+", type=Path, help="execute these .ipynb files instead, uncached")
    for command in (build, execute):
        command.add_argument("--jobs", type=_jobs, default=2, help="worker processes (default: 2)")
        command.add_argument("--limit", type=_seconds, default=120.0, help="seconds a page may take (default: 120)")
    prose = commands.add_parser("prose", help="print the numbers in prose that are neither claim nor fact")
    prose.add_argument("files", nargs="*", type=Path, help="Markdown files (default: all pages)")
    return parser


def _jobs(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be 1 or more, got {value}")
    return value


def _seconds(text: str) -> float:
    value = float(text)
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"must be above 0 and finite, got {value}")
    return value


if __name__ == "__main__":
    sys.exit(main())
