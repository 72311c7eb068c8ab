"""What a lab needs from the library without offering its answers: the given model and machine,
correct stand-ins for earlier tasks, and a look at what a student's function leans on."""

from __future__ import annotations

import contextlib
import importlib
import json
import types
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

from lantern_lib.hardware import ACCELERATORS, Replica
from lantern_lib.hf_config import from_hf_config
from lantern_lib.model_config import LANTERN_70B, ModelConfig
from lantern_lib.units import require_int, require_one_of

#: Modules that a student's function may use in every week.
ALWAYS_ALLOWED = frozenset({"lantern_lib.units", "lantern_lib.hardware", "lantern_lib.model_config"})


def given_model(name: str, folder: str | Path = "configs") -> ModelConfig:
    """Return the model a lab was given.

    Parameters
    ----------
    name : str
        ``"lantern-70b"``, or the name of a ``config.json`` in `folder` without its ending [text].
    folder : str or Path
        Where the lab keeps its configs [text].

    Returns
    -------
    ModelConfig
        The shape.

    Raises
    ------
    ValueError
        If there is no such model, or it has biases, windows, experts or no gate, which week 1 does not count.

    Examples
    --------
    >>> given_model("lantern-70b").num_layers
    80
    """
    files = {path.stem: path for path in sorted(Path(folder).glob("*.json"))}
    if name == "lantern-70b":
        return LANTERN_70B
    if name not in files:
        raise ValueError(f"model_name must be one of {', '.join(['lantern-70b', *files])}, got {name!r}.")
    model = from_hf_config(json.loads(files[name].read_text(encoding="utf-8")), name=name)
    parts = (model.experts, model.latent, model.recurrent, model.full_attention, model.storage)
    plain = model.gated and not model.num_sliding_layers and all(part is None for part in parts)
    if not plain or model.qkv_bias or model.output_bias or model.mlp_bias:
        raise ValueError(f"model_name must be a dense gated model without biases and windows, got {name!r}.")
    return model


def given_replica(accelerator_name: str, tp_size: int) -> Replica:
    """Return the machine a lab was given.

    Parameters
    ----------
    accelerator_name : str
        A key of :data:`lantern_lib.hardware.ACCELERATORS` [text].
    tp_size : int
        How many of them share the model [count].

    Returns
    -------
    Replica
        The machine, with the course's default efficiencies.

    Raises
    ------
    ValueError
        If there is no such accelerator or `tp_size` is below 1.

    Examples
    --------
    >>> given_replica("H100", 4).tp_size
    4
    """
    require_one_of("accelerator_name", accelerator_name, ACCELERATORS)
    return Replica(ACCELERATORS[accelerator_name], tp_size=tp_size)


def stand_ins(week: int = 1) -> dict[str, Callable[..., Any]]:
    """Return correct versions of the functions and classes that a week's lab asks for, by name.

    The tests of a task put them in place of the student's earlier work, so that no mistake is
    paid for twice. They stand in ``lantern_lib/labs/weekN.py``.

    Parameters
    ----------
    week : int
        The lab's week, 1 to 8 [count].

    Returns
    -------
    dict of str to callable
        Same signatures and units as in the lab.

    Examples
    --------
    >>> stand_ins(1)["kv_bytes_per_token"](LANTERN_70B)
    327680.0
    """
    found: dict[str, Callable[..., Any]] = _week(week).STAND_INS
    return dict(found)


def allowed_modules(week: int = 1) -> frozenset[str]:
    """Return the library modules that a student's work in a week may use.

    Parameters
    ----------
    week : int
        The lab's week, 1 to 8 [count].

    Returns
    -------
    frozenset of str
        Names of modules; all others hold what the lab asks for [text].

    Examples
    --------
    >>> "lantern_lib.kv_cache" in allowed_modules(1)
    False
    """
    return ALWAYS_ALLOWED | frozenset(f"lantern_lib.{name}" for name in _week(week).ALLOWED)


def _week(week: int) -> types.ModuleType:
    return importlib.import_module(f"lantern_lib.labs.week{require_int('week', week)}")


def leans_on(function: Callable[..., Any], past: Collection[str] = (), week: int = 1) -> str:
    """Return the first library module with answers that a function reaches, or an empty text.

    Follows the names a function uses, its helpers in the notebook, wrappers and imports inside the
    body. It is a courtesy check, not a guard: code that hides on purpose gets past it.

    Parameters
    ----------
    function : callable
        A student's function.
    past : collection of str
        Names that are not followed: functions of earlier tasks, which answer for themselves [text].
    week : int
        The lab's week, which says what may be used [count].

    Returns
    -------
    str
        A module's name, or an empty text [text].

    Examples
    --------
    >>> from lantern_lib import kv_cache
    >>> leans_on(kv_cache.bytes_per_token)
    'lantern_lib.kv_cache'
    """
    allowed = allowed_modules(week)
    seen: set[int] = set()
    waiting: list[Any] = [function]
    while waiting:
        thing = waiting.pop()
        if id(thing) in seen:
            continue
        seen.add(id(thing))
        module = thing.__name__ if isinstance(thing, types.ModuleType) else getattr(thing, "__module__", "") or ""
        if _holds_answers(module, allowed):
            return module
        # functools.partial has func; decorators that behave leave __wrapped__.
        waiting += [getattr(thing, attribute) for attribute in ("func", "__wrapped__") if hasattr(thing, attribute)]
        if isinstance(thing, type) and not module.startswith("lantern_lib"):
            waiting += [part for part in vars(thing).values() if isinstance(part, types.FunctionType)]
        # Only what the notebook defines is followed; a package's inside is its own affair.
        if isinstance(thing, types.FunctionType) and not module.startswith("lantern_lib"):
            named = _named_module(thing, allowed)
            if named:
                return named
            waiting += _reached(thing, past)
    return ""


def _holds_answers(module: str, allowed: Collection[str]) -> bool:
    return module.startswith("lantern_lib.") and module not in allowed


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


def _reached(function: types.FunctionType, past: Collection[str]) -> list[Any]:
    names = {name for code in _codes(function.__code__) for name in code.co_names} - set(past)
    cells = []
    for cell in function.__closure__ or ():
        with contextlib.suppress(ValueError):  # a name that the enclosing function has not bound yet
            cells.append(cell.cell_contents)
    found = [function.__globals__[name] for name in names if name in function.__globals__]
    return found + cells + list(function.__defaults__ or ())


def _named_module(function: types.FunctionType, allowed: Collection[str]) -> str:
    """Find an import of the library in the body, or its name handed to an importer."""
    names = {name for code in _codes(function.__code__) for name in code.co_names}
    texts = {text for code in _codes(function.__code__) for text in code.co_consts if isinstance(text, str)}
    texts.discard(function.__doc__ or "")
    for name in names:
        if _holds_answers(name, allowed):
            return name
        # `from lantern_lib import kv_cache` leaves the two names apart.
        if "lantern_lib" in names and _is_module(name, allowed):
            return f"lantern_lib.{name}"
    if names & {"__import__", "import_module", "eval", "exec"}:
        return next((text for text in texts if "lantern_lib" in text), "")
    return ""


def _is_module(name: str, allowed: Collection[str]) -> bool:
    library = Path(__file__).parent.parent
    exists = (library / f"{name}.py").exists() or (library / name).is_dir()
    return exists and _holds_answers(f"lantern_lib.{name}", allowed)
