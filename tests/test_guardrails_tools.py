"""The gate before the tools: what it refuses, what a person is shown, and that a key runs once."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from lantern_lib.guardrails.tools import Argument, Gatekeeper, RefusedCallError, ToolSpec

SPEC = ToolSpec(
    "send",
    (
        Argument("to", "texts", minimum=1, maximum=3, choices=("ana@lantern.example", "ben@lantern.example")),
        Argument("body", maximum=20),
        Argument("copies", "integer", required=False, minimum=1, maximum=5),
        Argument("weight", "number", required=False, minimum=0),
        Argument("urgent", "boolean", required=False),
        Argument("tone", required=False, choices=("plain", "warm")),
    ),
    confirm=True,
)
GOOD: dict[str, Any] = {"to": ["ana@lantern.example"], "body": "Hi"}


class Mail:
    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []

    def __call__(self, **arguments: Any) -> int:
        self.sent.append(arguments)
        return len(self.sent)


@pytest.mark.parametrize(
    "change",
    [
        {"to": []},
        {"to": ["ana@lantern.example"] * 4},
        {"to": ["eve@collect.example"]},
        {"to": "ana@lantern.example"},
        {"to": [1]},
        {"body": 5},
        {"body": "x" * 21},
        {"body": None},
        {"copies": 0},
        {"copies": 6},
        {"copies": 2.0},
        {"copies": True},
        {"copies": "2"},
        {"weight": -1},
        {"weight": float("nan")},
        {"urgent": 1},
        {"tone": "cold"},
        {"bcc": "eve@collect.example"},
        {"__class__": "x"},
    ],
)
def test_a_call_that_does_not_fit_never_reaches_the_tool_or_the_person(change: dict[str, object]) -> None:
    mail, asked = Mail(), []
    gate = Gatekeeper({"send": (SPEC, mail)}, confirm=lambda action: bool(asked.append(action)) or True)
    with pytest.raises(RefusedCallError):
        gate.call("send", GOOD | change, key="1")
    assert mail.sent == []
    assert asked == []
    assert [entry.ran for entry in gate.record] == [None]


def test_missing_unknown_and_malformed_calls_are_refused_and_recorded() -> None:
    gate = Gatekeeper({"send": (SPEC, Mail())})
    for name, arguments in (("send", {"body": "Hi"}), ("delete", {}), ("send", ["to"]), ("send", {1: 2})):
        with pytest.raises(RefusedCallError):
            gate.call(name, arguments, key="1")  # type: ignore[arg-type]
    assert len(gate.record) == 4


def test_without_a_person_nothing_that_needs_one_runs() -> None:
    mail = Mail()
    with pytest.raises(RefusedCallError, match="declined"):
        Gatekeeper({"send": (SPEC, mail)}).call("send", GOOD, key="1")
    assert mail.sent == []


def test_the_person_sees_what_runs_even_if_the_caller_changes_it_meanwhile() -> None:
    mail, arguments = Mail(), {"to": ["ana@lantern.example"], "body": "Hi"}

    def confirm(action: str) -> bool:
        assert action == "send\n  body: 'Hi'\n  to: ('ana@lantern.example',)"
        arguments["to"].append("ben@lantern.example")  # type: ignore[attr-defined]
        arguments["body"] = "Bye"
        return True

    gate = Gatekeeper({"send": (SPEC, mail)}, confirm=confirm)
    gate.call("send", arguments, key="1")
    assert mail.sent == [{"to": ("ana@lantern.example",), "body": "Hi"}]
    assert gate.record[0].ran == "send\n  body: 'Hi'\n  to: ('ana@lantern.example',)"


def test_hidden_characters_are_shown() -> None:
    shown: list[str] = []
    gate = Gatekeeper({"send": (SPEC, Mail())}, confirm=lambda action: bool(shown.append(action)))
    with pytest.raises(RefusedCallError):
        gate.call("send", GOOD | {"body": "a\u202eb\u200bc\n to: x"}, key="1")
    assert shown[0].splitlines()[1] == r"  body: 'a\u202eb\u200bc\n to: x'"


def test_a_key_runs_once_and_only_for_its_action() -> None:
    mail, asked = Mail(), []
    gate = Gatekeeper({"send": (SPEC, mail)}, confirm=lambda action: bool(asked.append(action)) or True)
    assert [gate.call("send", GOOD, key="1") for _ in range(3)] == [1, 1, 1]
    assert len(mail.sent) == len(asked) == 1
    with pytest.raises(RefusedCallError, match="^key must be new"):
        gate.call("send", GOOD | {"body": "Other"}, key="1")
    assert gate.call("send", GOOD, key="2") == 2
    assert [e.outcome for e in gate.record][:3] == ["ran", "repeated, nothing ran", "repeated, nothing ran"]
    assert sum(e.ran is not None for e in gate.record) == len(mail.sent) == 2


def test_a_run_that_failed_is_not_tried_again() -> None:
    calls: list[int] = []

    def broken() -> None:
        calls.append(1)
        raise OSError("connection lost")

    gate = Gatekeeper({"pay": (ToolSpec("pay"), broken)})
    with pytest.raises(OSError, match="connection lost"):
        gate.call("pay", {}, key="1")
    with pytest.raises(RefusedCallError, match="under way or failed"):
        gate.call("pay", {}, key="1")
    assert len(calls) == 1


def test_many_threads_with_one_key_run_it_once() -> None:
    mail, start = Mail(), threading.Barrier(16)
    gate = Gatekeeper({"send": (SPEC, mail)}, confirm=lambda action: True)
    results: list[int | str] = []

    def work() -> None:
        start.wait()
        try:
            results.append(gate.call("send", GOOD, key="1"))
        except RefusedCallError:
            results.append("under way")

    threads = [threading.Thread(target=work) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(mail.sent) == 1
    assert set(results) <= {1, "under way"}
    assert len(gate.record) == 16


def test_a_task_has_a_last_call() -> None:
    gate = Gatekeeper({"look": (ToolSpec("look"), lambda: 0)}, max_calls=3)
    for number in range(3):
        gate.call("look", {}, key=str(number))
    with pytest.raises(RefusedCallError, match="3 calls at most"):
        gate.call("look", {}, key="4")
    assert sum(entry.ran is not None for entry in gate.record) == 3


def test_a_spec_is_checked_when_it_is_written() -> None:
    with pytest.raises(ValueError, match="^kind"):
        Argument("x", "object")
    with pytest.raises(ValueError, match="^choices"):
        Argument("x", "integer", choices=("1",))
    with pytest.raises(ValueError, match="^max_calls"):
        Gatekeeper({}, max_calls=0)
