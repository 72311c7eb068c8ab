"""The gate between a tool call that a model wrote and the tool: check, ask a person, run once, record."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lantern_lib.units import require_int

_KINDS: dict[str, tuple[type, ...]] = {
    "text": (str,),
    "texts": (list, tuple),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
}


class RefusedCallError(ValueError):
    """A call that does not fit its tool, or that a person declined."""


@dataclass(frozen=True)
class Argument:
    """What one argument of a tool may be.

    ``kind`` is text, texts (a list of them), integer, number or boolean. ``minimum`` and ``maximum`` bound a number
    by its value, a text by its length and a list by its count. ``choices`` bounds a text, or each text of a list.
    """

    name: str
    kind: str = "text"
    required: bool = True
    choices: tuple[str, ...] = ()
    minimum: float | None = None
    maximum: float | None = None

    def __post_init__(self) -> None:
        if self.kind not in _KINDS:
            raise ValueError(
                f"kind must be one of {sorted(_KINDS)}, got {self.kind!r}. Nested values are not supported."
            )
        if self.choices and self.kind not in ("text", "texts"):
            raise ValueError(f"choices must go with a text, got kind {self.kind!r}. Use minimum and maximum.")

    def checked(self, value: object) -> Any:
        """Return a value if it fits; a list as a tuple, so that nobody changes it later.

        Parameters
        ----------
        value : object
            What the model wrote.

        Returns
        -------
        object
            The value, never converted from another type.

        Raises
        ------
        RefusedCallError
            If the type, the range or the choice is wrong.
        """
        number_as_bool = isinstance(value, bool) and self.kind != "boolean"
        if not isinstance(value, _KINDS[self.kind]) or number_as_bool:
            raise RefusedCallError(f"{self.name} must be of kind {self.kind}, got {value!r}.")
        items = tuple(value) if isinstance(value, list | tuple) else (value,)
        if self.kind == "texts" and not all(isinstance(item, str) for item in items):
            raise RefusedCallError(f"{self.name} must be a list of texts, got {value!r}.")
        size = len(value) if isinstance(value, str | list | tuple) else value
        low = self.minimum is not None and not size >= self.minimum  # type: ignore[operator]
        high = self.maximum is not None and not size <= self.maximum  # type: ignore[operator]
        if low or high or size != size:  # the last is true of NaN alone
            raise RefusedCallError(f"{self.name} must be in [{self.minimum}, {self.maximum}], got {size!r}.")
        wrong = [item for item in items if self.choices and item not in self.choices]
        if wrong:
            raise RefusedCallError(f"{self.name} must be of {list(self.choices)}, got {wrong[0]!r}.")
        return items if self.kind == "texts" else value


@dataclass(frozen=True)
class ToolSpec:
    """A tool as the gate sees it. ``confirm`` is for what cannot be undone or reaches others."""

    name: str
    arguments: tuple[Argument, ...] = ()
    confirm: bool = False

    def checked(self, arguments: Mapping[str, object]) -> dict[str, Any]:
        """Return the arguments if all fit and none is unknown.

        Parameters
        ----------
        arguments : mapping of str to object
            What the model wrote.

        Returns
        -------
        dict of str to object
            A copy that the caller cannot change from outside.

        Raises
        ------
        RefusedCallError
            If one is missing, unknown or does not fit.
        """
        known = {each.name: each for each in self.arguments}
        if not isinstance(arguments, Mapping) or not all(isinstance(key, str) for key in arguments):
            raise RefusedCallError(f"arguments must be a mapping of names to values, got {arguments!r}.")
        unknown = sorted(set(arguments) - set(known))
        if unknown:
            raise RefusedCallError(f"{self.name} must get only {sorted(known)}, got {unknown}.")
        missing = [name for name, each in known.items() if each.required and name not in arguments]
        if missing:
            raise RefusedCallError(f"{self.name} must get {missing[0]}, got {sorted(arguments)}.")
        return {name: known[name].checked(value) for name, value in arguments.items()}


def action_text(name: str, arguments: Mapping[str, object]) -> str:
    """Return the action for a person to confirm: every argument in full, nothing hidden.

    Parameters
    ----------
    name : str
        The tool [text].
    arguments : mapping of str to object
        What would be run.

    Returns
    -------
    str
        One line an argument. Characters that hide, or turn text around, are written as escapes, so what is read is
        what runs. Letters of other alphabets that look alike stay as they are: bound addresses by ``choices``.

    Examples
    --------
    >>> print(action_text("send", {"to": ("ana@lantern.example",), "body": "Hi"}))
    send
      body: 'Hi'
      to: ('ana@lantern.example',)
    """
    # repr escapes what is not printable, among it the marks that reverse the direction of text.
    return "\n".join([name] + [f"  {key}: {arguments[key]!r}" for key in sorted(arguments)])


@dataclass(frozen=True)
class Entry:
    """One line of the record: what the model asked for, what was decided, and what ran, None if nothing did."""

    key: str
    name: str
    asked: str
    outcome: str
    ran: str | None = None


@dataclass
class _Run:
    action: str
    finished: bool = False
    result: Any = None


@dataclass
class Gatekeeper:
    """Let calls through to tools: validated, confirmed where needed, run at most once a key, recorded.

    ``tools`` maps a name to its spec and the function that does the work; the function holds the credentials, the
    model never sees them. ``confirm`` gets :func:`action_text` and answers for the person. ``max_calls`` bounds the
    whole task, refused calls too.

    Examples
    --------
    >>> spec = ToolSpec("send", (Argument("to"), Argument("body", maximum=500)), confirm=True)
    >>> gate = Gatekeeper({"send": (spec, lambda to, body: "sent")}, confirm=lambda action: "ana@" in action)
    >>> gate.call("send", {"to": "ana@lantern.example", "body": "Hi"}, key="1")
    'sent'
    >>> gate.call("send", {"to": "eve@collect.example", "body": "Hi"}, key="2")
    Traceback (most recent call last):
    ...
    lantern_lib.guardrails.tools.RefusedCallError: declined by a person
    >>> [entry.outcome for entry in gate.record]
    ['ran', 'declined by a person']
    """

    tools: Mapping[str, tuple[ToolSpec, Callable[..., Any]]]
    confirm: Callable[[str], bool] = lambda action: False
    max_calls: int = 50
    record: list[Entry] = field(default_factory=list)
    _calls: int = field(default=0, repr=False)
    _runs: dict[str, _Run] = field(default_factory=dict, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def __post_init__(self) -> None:
        require_int("max_calls", self.max_calls, hint="A loop that nothing bounds is a bill that nothing bounds.")

    def call(self, name: str, arguments: Mapping[str, object], key: str) -> Any:
        """Run a call that the model asked for, or refuse it; either way it is in the record.

        Parameters
        ----------
        name : str
            The tool [text].
        arguments : mapping of str to object
            What the model wrote.
        key : str
            Idempotency key: the same one again gives the first result and runs nothing [text].

        Returns
        -------
        object
            What the tool returned.

        Raises
        ------
        RefusedCallError
            If the call does not fit, the person declines, the key was used for another call, its first run has not
            come back or failed, or the task has used up its calls.
        """
        asked = self._asked(name, arguments)
        try:
            action, run, checked = self._admit(name, arguments, key)
        except RefusedCallError as refusal:
            self._note(key, name, asked, str(refusal))
            raise
        if checked is None:
            self._note(key, name, asked, "repeated, nothing ran")
            return run.result
        try:
            run.result = self.tools[name][1](**checked)
        except Exception:
            # Whether the action took effect is unknown, so the key stays used.
            self._note(key, name, asked, "failed", action)
            raise
        run.finished = True
        self._note(key, name, asked, "ran", action)
        return run.result

    def _admit(self, name: str, arguments: Mapping[str, object], key: str) -> tuple[str, _Run, dict[str, Any] | None]:
        with self._lock:
            self._calls += 1
            if self._calls > self.max_calls:
                raise RefusedCallError(f"the task must make {self.max_calls} calls at most")
        if name not in self.tools:
            raise RefusedCallError(f"name must be one of {sorted(self.tools)}, got {name!r}.")
        spec = self.tools[name][0]
        checked = spec.checked(arguments)
        action = action_text(name, checked)
        known = self._runs.get(key)
        if known is None and spec.confirm and not self.confirm(action):
            raise RefusedCallError("declined by a person")
        with self._lock:
            # Two threads may get here with one key; the first runs.
            first = key not in self._runs
            run = self._runs.setdefault(key, _Run(action))
        if first:
            return action, run, checked
        if run.action != action:
            raise RefusedCallError(f"key must be new for a new action, got {key!r} again.")
        if not run.finished:
            raise RefusedCallError(f"key {key!r} is under way or failed: find out what happened, do not try again.")
        return action, run, None

    @staticmethod
    def _asked(name: object, arguments: object) -> str:
        if isinstance(arguments, Mapping) and all(isinstance(key, str) for key in arguments):
            return action_text(repr(name).strip("'"), arguments)
        return f"{name!r}\n  {arguments!r}"

    def _note(self, key: str, name: str, asked: str, outcome: str, ran: str | None = None) -> None:
        with self._lock:
            self.record.append(Entry(key, name, asked, outcome, ran))
