"""Where the book lies: its settings, pages and build folder, read once for every command."""

from __future__ import annotations

import hashlib
import importlib.util
import sys
from collections.abc import Iterable
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

from myst_parser.config.main import MdParserConfig


@dataclass(frozen=True)
class Project:
    """A book project. ``root`` holds ``_config.yml`` and ``book/_toc.yml``."""

    root: Path

    def __post_init__(self) -> None:
        """Refuse a folder that holds no book."""
        for needed in (self.config_path, self.toc_path):
            if not needed.is_file():
                raise ValueError(
                    f"root {str(self.root)!r} has no {needed.relative_to(self.root)}; run this in the project"
                )

    @property
    def config_path(self) -> Path:
        """The settings of the book."""
        return self.root / "_config.yml"

    @property
    def source(self) -> Path:
        """The folder of the pages."""
        return self.root / "book"

    @property
    def toc_path(self) -> Path:
        """The table of contents."""
        return self.source / "_toc.yml"

    @property
    def build(self) -> Path:
        """The folder of everything that building makes."""
        return self.root / "_build"

    @property
    def html(self) -> Path:
        """The folder of the built pages."""
        return self.build / "html"

    @property
    def cache(self) -> Path:
        """The jupyter-cache that execution fills and Sphinx reads; where myst-nb looks unless told."""
        return self.build / ".jupyter_cache"

    @cached_property
    def sphinx_config(self) -> dict[str, Any]:
        """The Sphinx settings that Jupyter Book makes of ``_config.yml``."""
        from jupyter_book.config import get_final_config

        settings, _ = get_final_config(
            user_yaml=self.config_path, cli_config={"latex_individualpages": False}, sourcedir=self.source
        )
        return settings

    @cached_property
    def markdown(self) -> MdParserConfig:
        """The Markdown settings that the pages are read with."""
        known = {field.name for field in fields(MdParserConfig)}
        given = {
            key.removeprefix("myst_"): value for key, value in self.sphinx_config.items() if key.startswith("myst_")
        }
        return MdParserConfig(**{key: value for key, value in given.items() if key in known})

    @cached_property
    def pages(self) -> dict[str, Path]:
        """The pages of the table of contents: name (``a/a3``) to source file, in reading order."""
        from sphinx_external_toc.parsing import parse_toc_yaml

        found: dict[str, Path] = {}
        for name in parse_toc_yaml(self.toc_path):
            stem = self.source / name
            suffixes = [""] if stem.suffix in {".md", ".ipynb"} else [".md", ".ipynb"]
            path = next((p for s in suffixes if (p := Path(f"{stem}{s}")).is_file()), None)
            if path is None:
                raise ValueError(f"{self.show(self.toc_path)} names {name!r}, which has no .md or .ipynb file")
            found[name.removesuffix(path.suffix)] = path
        return found

    def show(self, path: Path) -> str:
        """Return a path as printed to people: relative to the root if it lies inside."""
        return str(path.relative_to(self.root) if path.is_relative_to(self.root) else path)

    def execution_key(self) -> str:
        """Return a digest of all that a page's numbers depend on besides the page itself."""
        library = importlib.util.find_spec("lantern_lib")
        folders = library.submodule_search_locations if library is not None else None
        files = [self.source / "facts.toml", self.root / "requirements.lock", *_sources(self.source / "data")]
        for folder in folders or []:
            files += _sources(Path(folder))
        return _digest(files, sys.version)

    def reading_key(self) -> str:
        """Return a digest of all that a page's HTML depends on besides the page itself."""
        files = [self.config_path, *_sources(Path(__file__).parent)]
        templates = self.source / "_templates"
        files += [path for path in templates.rglob("*") if path.is_file()]
        return _digest(files, self.execution_key())


def _sources(folder: Path) -> list[Path]:
    return [p for p in folder.rglob("*") if p.is_file() and "__pycache__" not in p.parts]


def _digest(files: Iterable[Path], *texts: str) -> str:
    total = hashlib.sha256("\0".join(texts).encode())
    for path in sorted(set(files)):
        # The name alone: a project that moves keeps its results.
        total.update(path.name.encode())
        if path.is_file():
            total.update(hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()
