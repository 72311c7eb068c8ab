"""The notation page and the library use the same names."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import re
from pathlib import Path

import lantern_lib
from lantern_lib import ModelConfig

PAGE = Path(__file__).resolve().parent.parent / "book" / "notation.md"
MODULES = [
    "units",
    "hardware",
    "model_config",
    "transformer",
    "kv_cache",
    "roofline",
    "collectives",
    "step",
    "parallelism",
    "mixture_of_experts",
    "chunked_prefill",
    "queueing",
    "speculative",
    "prompt_cache.sessions",
    "pricing.rates",
]


def table_names() -> list[str]:
    rows = re.findall(r"^\| \$[^|]+\$ \|[^|]+\|[^|]*\| `([^`]+)` \|$", PAGE.read_text(encoding="utf-8"), re.M)
    return [row.split(".")[-1] for row in rows]


def library_names() -> set[str]:
    """Every public function, parameter, field and property of the library's lower layers."""
    names: set[str] = set()
    for module in (importlib.import_module(f"lantern_lib.{name}") for name in MODULES):
        for name, value in vars(module).items():
            if getattr(value, "__module__", None) != module.__name__ or name.startswith("_"):
                continue
            names.add(name)
            if inspect.isclass(value):
                names |= {n for n in vars(value) if not n.startswith("_")}
                if dataclasses.is_dataclass(value):
                    names |= {f.name for f in dataclasses.fields(value)}
            elif inspect.isfunction(value):
                names |= set(inspect.signature(value).parameters)
    return names


def test_every_name_of_the_page_is_a_name_of_the_library() -> None:
    names = set(table_names())
    assert len(names) > 25
    assert names <= library_names()


def test_every_size_of_a_model_has_a_symbol() -> None:
    sizes = {f.name for f in dataclasses.fields(ModelConfig) if f.name.endswith(("_size", "_dim", "_heads"))}
    assert sizes <= set(table_names())


def test_no_symbol_stands_for_two_things() -> None:
    symbols = re.findall(r"^\| (\$[^|]+\$) \|", PAGE.read_text(encoding="utf-8"), re.M)
    assert len(symbols) == len(set(symbols))


def test_the_package_offers_what_pages_import() -> None:
    assert set(lantern_lib.__all__) <= set(dir(lantern_lib))
