"""Capability rules against brute force: every set of tools, every removal, every way that text can take."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest

from lantern_lib.guardrails import capabilities as rules
from lantern_lib.guardrails.capabilities import Handover, Tool

KINDS = [Tool("-".join(map(str, bits)), *map(bool, bits)) for bits in product((0, 1), repeat=3)]
INBOX = Tool("inbox", private_data=True, untrusted_text=True)
CONTACTS = Tool("contacts", private_data=True)
SEND = Tool("send", outward_channel=True)


def leaks(tools: list[Tool]) -> bool:
    """Ask the question as it is told: is there something to take, somebody who asks, and a way out?"""
    way_out = any(t.outward_channel and not t.confirmed for t in tools)
    return any(t.private_data for t in tools) and any(t.untrusted_text for t in tools) and way_out


def test_every_session_of_the_eight_kinds_of_tools() -> None:
    for size in range(9):
        for tools in combinations(KINDS, size):
            assert rules.is_exposed(tools) == leaks(list(tools))


def test_the_smallest_removals_are_those_that_trying_all_finds() -> None:
    for size in range(7):
        for tools in combinations(KINDS, size):
            safe = [
                frozenset(t.name for t in gone)
                for count in range(size + 1)
                for gone in combinations(tools, count)
                if not leaks([t for t in tools if t not in gone])
            ]
            fewest = min(len(names) for names in safe)
            best = {names for names in safe if len(names) == fewest and names}
            assert set(rules.smallest_removals(tools)) == best


def test_confirming_works_and_confirming_less_does_not() -> None:
    for size in range(7):
        for tools in combinations(KINDS, size):
            names = rules.channels_to_confirm(tools)
            asked = [Tool(*_fields(t), confirmed=t.name in names) for t in tools]
            assert not leaks(asked)
            for name in names:
                fewer = [Tool(*_fields(t), confirmed=t.name in names - {name}) for t in tools]
                assert leaks(fewer)


def _fields(tool: Tool) -> tuple[str, bool, bool, bool]:
    return tool.name, tool.private_data, tool.untrusted_text, tool.outward_channel


def test_a_split_leaves_two_safe_sessions_or_says_that_there_is_none() -> None:
    for size in range(7):
        for tools in combinations(KINDS, size):
            found = rules.split(tools)
            if found is None:
                assert leaks([t for t in tools if t.untrusted_text])
            else:
                assert not leaks(list(found.reader))
                assert not leaks(list(found.actor))
                assert {*found.reader, *found.actor} == set(tools)


def test_text_that_nobody_saw_carries_what_a_walk_along_every_path_finds() -> None:
    rng = np.random.default_rng(3)
    names = list("abcd")
    for _ in range(300):
        sessions = {name: [KINDS[i] for i in rng.integers(0, 8, rng.integers(0, 3))] for name in names}
        pairs = [(a, b) for a in names for b in names if a != b and rng.random() < 0.3]
        handovers = [Handover(a, b, vetted=bool(rng.random() < 0.4)) for a, b in pairs]
        expected = []
        for name in names:
            reached, waiting = {name}, [name]
            while waiting:
                at = waiting.pop()
                new = {h.source for h in handovers if h.target == at and not h.vetted} - reached
                reached |= new
                waiting += new
            text = [t for source in reached for t in sessions[source]]
            if leaks([Tool("x", t.private_data, t.untrusted_text) for t in text] + sessions[name]):
                expected.append(name)
        assert rules.exposed_sessions(sessions, handovers) == expected


def test_the_mail_agent_of_the_exercise() -> None:
    assert rules.smallest_removals([INBOX, CONTACTS, SEND]) == [frozenset({"inbox"}), frozenset({"send"})]
    found = rules.split([INBOX, CONTACTS, SEND])
    assert found is not None
    assert found.reader == (INBOX,)
    sessions = {"reader": found.reader, "actor": found.actor}
    assert rules.exposed_sessions(sessions, [Handover("reader", "actor")]) == ["actor"]
    assert rules.exposed_sessions(sessions, [Handover("reader", "actor", vetted=True)]) == []


def test_mistakes_are_named() -> None:
    with pytest.raises(ValueError, match="^tools must have a name each"):
        rules.smallest_removals([SEND, SEND])
    with pytest.raises(ValueError, match="^name must be a text"):
        Tool(" ")
    with pytest.raises(ValueError, match="^handovers must join sessions"):
        rules.exposed_sessions({"a": [SEND]}, [Handover("a", "b")])
