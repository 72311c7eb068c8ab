"""Week 7: what stands in for a student's functions, and how answers in words are compared."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import unquote

from lantern_lib.guardrails.egress import AllowList, Rule

#: Library modules that a student may use besides those of every week.
ALLOWED: frozenset[str] = frozenset({"step"})

_STRICTEST_FIRST = ("deny", "confirm", "allow")


def _fits(rule: Any, call: Any) -> bool:
    if rule.tool != call.tool or rule.marks - call.marks:
        return False
    # A refusal may speak of some arguments; a permission speaks of all of them.
    if rule.effect != "deny" and rule.arguments.keys() != call.arguments.keys():
        return False
    return all(
        name in call.arguments and (allowed is None or call.arguments[name] in allowed)
        for name, allowed in rule.arguments.items()
    )


def _verdict(rules: Sequence[Any], call: Any) -> str:
    said = {rule.effect for rule in rules if _fits(rule, call)}
    return next((effect for effect in _STRICTEST_FIRST if effect in said), "deny")


def _deputy_verdict(rules_of: Mapping[str, Sequence[Any]], agent: str, call: Any) -> str:
    said = {_verdict(rules_of.get(who, ()), call) for who in (agent, call.user)}
    return next(effect for effect in _STRICTEST_FIRST if effect in said)


def _may_leave(url: str, hosts: Sequence[str]) -> bool:
    return AllowList(tuple(Rule(host) for host in hosts)).check(url).allowed


def _decoded(text: str) -> list[bytes]:
    """Everything that a text says in base64 or in hexadecimal digits, wherever a group begins."""
    found = []
    for match in re.finditer(r"[\w+/-]+", text.replace("-", "+").replace("_", "/"), re.ASCII):
        for skipped in range(4):
            symbols = match[0][skipped:]
            # Whole groups of four, then what a shorter last group still says.
            for end in (len(symbols) - len(symbols) % 4, len(symbols)):
                try:
                    found.append(base64.b64decode(symbols[:end] + "=" * (-end % 4)))
                except binascii.Error:
                    continue
    for digits in re.findall(r"[0-9a-fA-F]+", text):
        for skipped in range(2):
            even = digits[skipped : len(digits) - (len(digits) - skipped) % 2]
            found.append(bytes.fromhex(even))
    return found


def _smuggles(text: str, secret: str) -> bool:
    plain, before = unquote(text), text
    while plain != before:
        plain, before = unquote(plain), plain
    wanted = secret.lower().encode()
    return any(wanted in reading.lower() for reading in [plain.encode(), *_decoded(plain)])


STAND_INS: dict[str, Callable[..., Any]] = {
    "verdict": _verdict,
    "deputy_verdict": _deputy_verdict,
    "may_leave": _may_leave,
    "smuggles": _smuggles,
}


def _plain(value: Any) -> Any:
    """A text as it is, a collection of them as a set, anything else as something that equals nothing right."""
    if isinstance(value, (set, frozenset, list, tuple)):
        return frozenset(_plain(part) for part in value)
    return value if isinstance(value, str) else f"no word: {value!r}"


def _said(value: Any) -> str:
    if isinstance(value, (set, frozenset, list, tuple)):
        return "{" + ", ".join(sorted(_said(part) for part in value)) + "}"
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def compare_words(
    task: Any, quantity: str, got: Any, expected: Any, slips: Sequence[tuple[Any, str]] = (), why: str = ""
) -> None:
    """Fail unless an answer is the right word, set of words or collection of such sets.

    Parameters
    ----------
    task : lantern_lib.checks.Task
        Whose test it is.
    quantity : str
        What is compared, in words [text].
    got : Any
        The student's answer; the order of a collection does not matter.
    expected : str, or set or list of it
        The right one.
    slips : sequence of (answer, str)
        What each misconception gives, and the sentence that says so. One that gives the right answer is passed over.
    why : str
        What to say of any other wrong answer [text].

    Raises
    ------
    CheckFailed
        If it is another.

    Examples
    --------
    >>> from lantern_lib.checks import Task
    >>> compare_words(Task(1, {}), "marks of a mail", {"private"}, {"private", "untrusted"}, why="Who wrote it?")
    Traceback (most recent call last):
    ...
    lantern_lib.checks.CheckFailed: Task 1, marks of a mail: got {private}, expected {private, untrusted}. Who wrote it?
    """
    given, right = _plain(got), _plain(expected)
    if got is None:
        why = "Does the function return its result on every path?"
    elif isinstance(expected, str) != isinstance(got, str):
        why = "That is no word." if isinstance(expected, str) else "Return a set or a list, as the docstring says."
    else:
        named = (text for wrong, text in slips if _plain(wrong) == given != right)
        why = next(named, why)
    task.demand(quantity, given == right, f"got {_said(got)}, expected {_said(expected)}. {why}".strip())
