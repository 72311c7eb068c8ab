"""Whether an answer's text leans on a module that holds the answer: read, never run, so that no code can deny it.

The student's process is asked too, with the functions themselves; this reading finds what it might hide.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import importlib
import importlib.util
from collections.abc import Collection, Iterator, Sequence

from lantern_grading.checker.cells import plain

_IMPORTERS = {"__import__", "import_module", "modules", "eval", "exec"}


def leans_by_text(
    sources: Sequence[str], name: str, past: Collection[str], allowed: Collection[str], later: Sequence[str] = ()
) -> str:
    """Return the first library module outside `allowed` that a definition uses by its text, or an empty text.

    Parameters
    ----------
    sources : sequence of str
        The student's cells, in order.
    name : str
        The function or class.
    past : collection of str
        Names that are not followed: they answer for themselves.
    allowed : collection of str
        Modules that may be used.
    later : sequence of str
        Cells that count only for names which no other cell has.

    Returns
    -------
    str
        A module's name, or an empty text.

    Examples
    --------
    >>> cells = ["from lantern_lib import kv_cache as k", "def f(m):\\n    return k.bytes_per_token(m)"]
    >>> leans_by_text(cells, "f", (), ())
    'lantern_lib.kv_cache'
    """
    known, bound = _names(sources)
    known_later, bound_later = _names(later)
    new = (known_later.keys() | bound_later.keys()) - known.keys() - bound.keys()
    known |= {key: tree for key, tree in known_later.items() if key in new}
    bound |= {key: module for key, module in bound_later.items() if key in new}
    seen, waiting = set(past) - {name}, [name]
    while waiting:
        current = waiting.pop()
        if current in seen:
            continue
        seen.add(current)
        if _holds_answers(bound.get(current, ""), allowed):
            return bound[current]
        if current in known:
            found = _named(known[current], allowed)
            if found:
                return found
            waiting += [node.id for node in ast.walk(known[current]) if isinstance(node, ast.Name)]
    return ""


def _names(sources: Sequence[str]) -> tuple[dict[str, ast.AST], dict[str, str]]:
    """Return what names are defined as, and the modules from which names are imported."""
    known: dict[str, ast.AST] = {}
    bound: dict[str, str] = {}
    for source in sources:
        here, imported = _names_of(source)
        known |= here
        bound |= imported
    return known, bound


@functools.lru_cache(256)  # each test of a paper asks for the cells that come before it
def _names_of(source: str) -> tuple[dict[str, ast.AST], dict[str, str]]:
    known: dict[str, ast.AST] = {}
    bound: dict[str, str] = {}
    with contextlib.suppress(SyntaxError, ValueError, RecursionError, MemoryError):
        tree = ast.parse(plain(source))
        for node in tree.body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                known[node.name] = node
            elif isinstance(node, ast.Assign):
                known.update({part.id: node.value for part in node.targets if isinstance(part, ast.Name)})
        for node in ast.walk(tree):
            bound.update(_imported(node))
    return known, bound


def _imported(node: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield the names that an import of the library binds, and the modules they come from."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            if alias.name.startswith("lantern_lib.") and alias.asname:
                yield alias.asname, alias.name
    elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "lantern_lib":
        for alias in node.names:
            yield alias.asname or alias.name, _home(str(node.module), alias.name)


def _home(module: str, name: str) -> str:
    """Return the module in which a name of the library is at home."""
    with contextlib.suppress(ImportError, ValueError):
        if importlib.util.find_spec(f"{module}.{name}") is not None:
            return f"{module}.{name}"
    with contextlib.suppress(ImportError):
        value = getattr(importlib.import_module(module), name, None)
        return str(getattr(value, "__module__", None) or module)
    return module


def _named(tree: ast.AST, allowed: Collection[str]) -> str:
    """Find a module that is named in full, imported inside, or handed to an importer."""
    nodes = list(ast.walk(tree))
    for node in nodes:
        modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        modules += [module for _, module in _imported(node)]
        if isinstance(node, ast.Attribute):
            parts = ast.unparse(node).split(".")
            modules += [".".join(parts[:2])] if parts[0] == "lantern_lib" else []
        found = next((module for module in modules if _holds_answers(module, allowed)), "")
        if found:
            return found
    used = {node.id for node in nodes if isinstance(node, ast.Name)}
    used |= {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    if used & _IMPORTERS:
        texts = (n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str))
        return next((text for text in texts if text.startswith("lantern_lib.")), "")
    return ""


def _holds_answers(module: str, allowed: Collection[str]) -> bool:
    return module.startswith("lantern_lib.") and module not in allowed
