"""Whether the last line of a test cell, which counts as the score, is the instructor's number or the student's word.

A test cell that ends in ``double(3)`` gives whatever the student's function returns as points. The cell is read, never
run: a value is the student's if it comes from a name that the answers define and nobody has compared it.
"""

from __future__ import annotations

import ast
import builtins
import functools
from collections.abc import Collection, Iterator, Sequence

#: Whatever these are asked, they give a truth of their own, or nothing.
_PLAIN = {
    "isinstance", "issubclass", "callable", "hasattr", "print", "isclose", "allclose", "array_equal", "isfinite",
    "isnan", "isinf",
}  # fmt: skip
_ALL_NAMES = {"globals", "locals", "vars"}
_FILLS = {"append", "appendleft", "extend", "add", "insert", "update", "setdefault"}
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)


def last_value(source: str) -> ast.expr | None:
    """Return the expression whose value a notebook shows for a cell; None after a semicolon, as IPython has it.

    Parameters
    ----------
    source : str
        Plain Python [text].

    Returns
    -------
    ast.expr or None
        The last statement, if it is one.

    Examples
    --------
    >>> ast.unparse(last_value("x = 1\\nx + 1  # shown"))
    'x + 1'
    >>> last_value("x + 1;  # not shown"), last_value("x = 1")
    (None, None)
    """
    body = _parsed(source).body
    if not body or not isinstance(body[-1], ast.Expr):
        return None
    after = source.split("\n")[body[-1].end_lineno - 1].encode()[body[-1].end_col_offset :]  # type: ignore[operator]
    return None if after.lstrip().startswith(b";") else body[-1].value


@functools.lru_cache(64)
def _parsed(source: str) -> ast.Module:
    return ast.parse(source)


def students_word(source: str, given: Sequence[str], asked: Collection[str]) -> str:
    """Return the last expression of a test cell if its value may be the student's own, or an empty text.

    Parameters
    ----------
    source : str
        The test cell [text].
    given : sequence of str
        The instructor's cells before it [text].
    asked : collection of str
        Names that the answers define [text].

    Returns
    -------
    str
        The expression, as Python writes it.

    Examples
    --------
    >>> students_word("got = double(3)\\ngot", [], ["double"])
    'got'
    >>> students_word("got = double(3)\\n2 * (got == 6)", [], ["double"])
    ''
    """
    value = last_value(source)
    if value is None:
        return ""
    return ast.unparse(value) if _Reading(source, tuple(given), asked).students(value) else ""


_Functions = dict[str, ast.FunctionDef | ast.AsyncFunctionDef]


@functools.lru_cache(64)
def _definitions(source: str) -> tuple[_Functions, set[str]]:
    """Return the functions that a cell defines and the names that it imports."""
    nodes = list(ast.walk(_parsed(source)))
    imports = [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
    names = {(alias.asname or alias.name).split(".")[0] for node in imports for alias in node.names}
    return {node.name: node for node in nodes if isinstance(node, _FUNCTIONS)}, names


class _Reading:
    """Which names of a test cell hold what is the student's."""

    def __init__(self, source: str, given: tuple[str, ...], asked: Collection[str]) -> None:
        self._words = set(asked)
        self._functions: _Functions = {}
        self._imported: set[str] = set()
        for functions, imported in map(_definitions, (*given, source)):
            self._functions |= functions
            self._imported |= imported
        self._open: set[str] = set()  # functions that are being read
        # Given cells run before any answer is there, so only their functions can hand on what is the student's.
        own = [node for node in _parsed(source).body if not isinstance(node, _FUNCTIONS)]
        self._follow([flow for node in own for part in ast.walk(node) for flow in _flows(part)])

    def _follow(self, flows: list[tuple[ast.expr, ast.expr]]) -> None:
        """Let what flows into a name make it the student's, until nothing is new."""
        before = -1
        while before != len(self._words):
            before = len(self._words)
            for target, value in flows:
                if self.students(value):
                    self._words |= {part.id for part in ast.walk(target) if isinstance(part, ast.Name)}

    def students(self, node: ast.AST) -> bool:
        """Say whether a value may be the student's."""
        if isinstance(node, ast.Compare | ast.Constant) or (
            isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
        ):
            return False
        if isinstance(node, ast.Name):
            return node.id in self._words
        if isinstance(node, ast.Call):
            return self._call(node)
        if isinstance(node, ast.IfExp):
            return self.students(node.body) or self.students(node.orelse)
        if isinstance(node, ast.Attribute | ast.Subscript | ast.NamedExpr):
            inside = node.value.func if isinstance(node.value, ast.Call) else None
            return getattr(inside, "id", "") in _ALL_NAMES or self.students(node.value)
        if isinstance(node, ast.Lambda):
            return self.students(node.body)
        if isinstance(node, _COMPREHENSIONS):
            parts = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
            return any(map(self.students, parts))
        return any(map(self.students, ast.iter_child_nodes(node)))

    def _call(self, node: ast.Call) -> bool:
        arguments = any(self.students(part) for part in [*node.args, *(word.value for word in node.keywords)])
        function = node.func
        name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        if self.students(function):
            return True
        if name in _PLAIN or name.startswith("assert"):
            return False
        if isinstance(function, ast.Attribute):
            root: ast.AST = function
            while isinstance(root, ast.Attribute):
                root = root.value
            # `Task.call` hands on what it is given; a module's functions make numbers of their arguments. Any other
            # object is the instructor's, and what it says is the instructor's word.
            of_module = isinstance(root, ast.Name) and root.id in self._imported
            return name == "call" or (of_module and arguments)
        if name in self._functions:
            return self._returns(name, arguments)
        return arguments and (hasattr(builtins, name) or name in self._imported)

    def _returns(self, name: str, arguments: bool) -> bool:
        """Read a function of the instructor's: with the student's values in its parameters, or without."""
        if name in self._open:
            return False
        function, before = self._functions[name], set(self._words)
        self._open.add(name)
        try:
            if arguments:
                self._words |= {part.arg for part in ast.walk(function.args) if isinstance(part, ast.arg)}
            self._follow([flow for part in ast.walk(function) for flow in _flows(part)])
            values = [part.value for part in ast.walk(function) if isinstance(part, ast.Return | ast.Yield)]
            return any(value is not None and self.students(value) for value in values)
        finally:
            self._open.discard(name)
            self._words = before


def _flows(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield what a statement or an expression puts where."""
    if isinstance(node, ast.Assign):
        yield from ((target, node.value) for target in node.targets)
    elif isinstance(node, ast.AnnAssign | ast.AugAssign | ast.NamedExpr) and node.value is not None:
        yield node.target, node.value
    elif isinstance(node, ast.For | ast.comprehension):
        yield node.target, node.iter
    elif isinstance(node, ast.withitem) and node.optional_vars is not None:
        yield node.optional_vars, node.context_expr
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _FILLS:
        yield from ((node.func.value, part) for part in node.args)
