"""Python and its libraries as they were before a student's code, put back before a test that runs beside that code.

It closes the usual ways to deceive such a test: another ``abs``, another ``numpy.testing.assert_allclose``, a
class of the library that is equal to everything, a trace that looks over the test's shoulder. It cannot close all of
them, because code in one process can reach everything there. This module runs inside the sandbox.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import types
from typing import Any

_FUNCTION = ("__code__", "__defaults__", "__kwdefaults__")
_HEAP = 1 << 9  # Py_TPFLAGS_HEAPTYPE: classes that are written in C cannot be changed


class Pristine:
    """What names stand for, in builtins, in every module that is loaded and in the classes of these modules.

    Names of functions, classes, modules and constants are put back, and the code of functions. What lies inside
    another object is not looked at.

    Examples
    --------
    >>> import math
    >>> before = Pristine()
    >>> math.isclose = lambda *args: True
    >>> before.put_back()
    1
    >>> math.isclose(1, 2)
    False
    """

    def __init__(self) -> None:
        self._loaded = {name: module for name, module in sys.modules.items() if isinstance(module, types.ModuleType)}
        spaces = [vars(module) for module in self._loaded.values()]
        self._spaces = [(space, {name: value for name, value in space.items() if _kept(value)}) for space in spaces]
        values = {id(value): value for _, names in self._spaces for value in names.values()}.values()
        classes = [value for value in values if isinstance(value, type) and value.__flags__ & _HEAP]
        self._classes = [(kind, dict(vars(kind))) for kind in classes]
        inner = [value for _, names in self._classes for value in names.values()]
        functions = [value for value in (*values, *inner) if isinstance(value, types.FunctionType)]
        self._functions = [(function, tuple(getattr(function, name) for name in _FUNCTION)) for function in functions]
        self._path, self._finders = list(sys.path), list(sys.meta_path)

    def put_back(self) -> int:
        """Let all names stand for what they did; return how many did not."""
        sys.settrace(None)
        sys.setprofile(None)
        threading.settrace(None)  # type: ignore[arg-type]
        threading.setprofile(None)
        changed = 0
        for name, module in self._loaded.items():
            changed += sys.modules.get(name) is not module
            sys.modules[name] = module
        sys.path[:], sys.meta_path[:] = self._path, self._finders
        for space, names in self._spaces:
            for name, value in names.items():
                if space.get(name) is not value:
                    space[name] = value
                    changed += 1
        for kind, names in self._classes:
            changed += self._class_put_back(kind, names)
        for function, parts in self._functions:
            for name, value in zip(_FUNCTION, parts, strict=True):
                if getattr(function, name) is not value:
                    setattr(function, name, value)
                    changed += 1
        return changed

    @staticmethod
    def _class_put_back(kind: type, names: dict[str, Any]) -> int:
        now = dict(vars(kind))
        changed = 0
        for name in now.keys() | names.keys():
            if now.get(name) is not names.get(name) and (_kept(names.get(name)) or _kept(now.get(name))):
                with contextlib.suppress(AttributeError, TypeError):
                    if name in names:
                        type.__setattr__(kind, name, names[name])
                    else:
                        type.__delattr__(kind, name)
                    changed += 1
        return changed


def _kept(value: Any) -> bool:
    """Say whether a name for it is put back: what can be called, and constants. The rest is state of a module's own."""
    return callable(value) or hasattr(type(value), "__get__") or isinstance(value, types.ModuleType | float)
