"""Blocks against lists that share nothing, and the prefix tree against comparing every sequence."""

from __future__ import annotations

import math
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from lantern_lib.kv_blocks import BlockPool, OutOfBlocksError, paged_slots
from lantern_lib.prefix_tree import Match, PrefixTree

TOKENS = st.lists(st.integers(0, 2), max_size=9)


class Blocks(RuleBasedStateMachine):
    """Each request keeps a list of its own. If a shared block were ever written, somebody's list would differ."""

    @initialize(blocks=st.integers(1, 12), size=st.integers(1, 4))
    def begin(self, blocks: int, size: int) -> None:
        self.pool, self.size, self.lists, self.next = BlockPool(blocks, size), size, {}, 0

    def attempt(self, blocks_needed: int, action: str, *arguments: object) -> bool:
        free, tables = self.pool.num_free, {r: self.pool.table(r) for r in self.pool.requests}
        try:
            getattr(self.pool, action)(*arguments)
        except OutOfBlocksError:
            assert blocks_needed > free
            assert {r: self.pool.table(r) for r in self.pool.requests} == tables
            return False
        assert free - self.pool.num_free == blocks_needed
        return True

    @rule(tokens=TOKENS)
    def allocate(self, tokens: list[int]) -> None:
        if self.attempt(math.ceil(len(tokens) / self.size), "allocate", self.next, tokens):
            self.lists[self.next] = list(tokens)
        self.next += 1

    @precondition(lambda self: self.lists)
    @rule(data=st.data(), tokens=TOKENS)
    def append(self, data: st.DataObject, tokens: list[int]) -> None:
        name = data.draw(st.sampled_from(sorted(self.lists)))
        old = self.lists[name]
        needed = math.ceil((len(old) + len(tokens)) / self.size) - math.ceil(len(old) / self.size)
        if tokens and len(old) % self.size and self.pool.references(self.pool.table(name)[-1]) > 1:
            needed += 1
        if self.attempt(needed, "append", name, tokens):
            old += tokens

    @precondition(lambda self: self.lists)
    @rule(data=st.data())
    def fork(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.lists)))
        shared = data.draw(st.integers(0, len(self.lists[name])))
        assert self.attempt(0, "fork", name, self.next, shared)
        self.lists[self.next] = self.lists[name][:shared]
        self.next += 1

    @precondition(lambda self: self.lists)
    @rule(data=st.data(), preempt=st.booleans())
    def leave(self, data: st.DataObject, preempt: bool) -> None:
        name = data.draw(st.sampled_from(sorted(self.lists)))
        tokens = self.lists.pop(name)
        if preempt:
            assert self.pool.preempt(name) == tuple(tokens)
        else:
            self.pool.free(name)
        with pytest.raises(ValueError, match="must hold a table"):
            self.pool.free(name)

    @invariant()
    def every_request_reads_what_it_wrote(self) -> None:
        for name, tokens in self.lists.items():
            assert self.pool.tokens(name) == tuple(tokens)

    @invariant()
    def blocks_are_conserved(self) -> None:
        held = Counter(block for name in self.lists for block in self.pool.table(name))
        assert len(held) + self.pool.num_free == self.pool.num_blocks
        for block in range(self.pool.num_blocks):
            assert self.pool.references(block) == held[block]


class Prefixes(RuleBasedStateMachine):
    """Every match is compared with all stored sequences, one by one."""

    @initialize(capacity=st.integers(1, 25))
    def begin(self, capacity: int) -> None:
        self.tree, self.capacity = PrefixTree(capacity), capacity
        self.stored: set[tuple[int, ...]] = set()  # every prefix of every sequence, by our own count
        self.held: list[tuple[tuple[int, ...], Match]] = []

    def prefixes(self) -> set[tuple[int, ...]]:
        return {s[:i] for s in self.tree.sequences() for i in range(1, len(s) + 1)}

    def longest(self, tokens: list[int]) -> int:
        return max((i for i in range(1, len(tokens) + 1) if tuple(tokens[:i]) in self.stored), default=0)

    @rule(tokens=TOKENS)
    def match(self, tokens: list[int]) -> None:
        assert self.tree.match(tokens) == self.longest(tokens)

    @rule(tokens=TOKENS)
    def insert(self, tokens: list[int]) -> None:
        known, full = self.longest(tokens), len(self.stored)
        added = self.tree.insert(tokens)
        present = known + added
        mine = {tuple(tokens[:i]) for i in range(1, present + 1)}
        assert self.prefixes() <= self.stored | mine
        assert mine <= self.prefixes()
        if full + len(tokens) - known <= self.capacity:  # nothing had to go
            assert self.prefixes() == self.stored | mine
            assert present == len(tokens)
        self.stored = self.prefixes()

    @rule(tokens=TOKENS)
    def hold(self, tokens: list[int]) -> None:
        match = self.tree.hold(tokens)
        assert match.num_tokens == self.longest(tokens)
        self.held.append((tuple(tokens[: match.num_tokens]), match))

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        _, match = self.held.pop(data.draw(st.integers(0, len(self.held) - 1)))
        self.tree.release(match)

    @rule(count=st.integers(0, 30))
    def evict(self, count: int) -> None:
        before = self.stored
        gone = self.tree.evict(count)
        self.stored = self.prefixes()
        assert self.stored <= before
        assert gone == len(before) - len(self.stored)
        if gone < count:  # then all that is left is held
            assert set(self.tree.sequences()) <= {tokens for tokens, _ in self.held}

    @invariant()
    def what_is_held_stays_and_the_size_is_true(self) -> None:
        for tokens, _ in self.held:
            assert not tokens or tokens in self.prefixes()
        assert self.tree.num_tokens == len(self.prefixes()) <= self.capacity


TestBlocks = Blocks.TestCase
TestPrefixes = Prefixes.TestCase
TestBlocks.settings = TestPrefixes.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)


def test_the_least_recently_used_leaf_goes_first() -> None:
    tree = PrefixTree(12)
    for tokens in ([1, 2, 3, 4], [1, 2, 5, 6], [7, 8, 9]):
        tree.insert(tokens)
    tree.hold([1, 2, 3, 4])
    tree.release(tree.hold([1, 2, 5, 6]))
    assert tree.evict(1) == 3
    assert sorted(tree.sequences()) == [(1, 2, 3, 4), (1, 2, 5, 6)]
    assert tree.evict(99) == 2
    assert tree.sequences() == [(1, 2, 3, 4)]


def test_a_match_is_released_once() -> None:
    tree = PrefixTree(9)
    tree.insert([1, 2])
    match = tree.hold([1, 2])
    tree.release(match)
    with pytest.raises(ValueError, match="^match must be held"):
        tree.release(match)


def test_a_prefix_is_shared_until_somebody_writes() -> None:
    """A prompt of 20 in blocks of 16: two who share it hold two blocks, and the first to write copies one."""
    pool = BlockPool(8, 16)
    pool.allocate("a", range(20))
    pool.fork("a", "b")
    assert (pool.num_free, pool.table("a")) == (6, pool.table("b"))
    pool.append("b", [99])
    assert (pool.num_free, pool.num_copies) == (5, 1)
    assert pool.table("a")[0] == pool.table("b")[0]
    assert pool.table("a")[1] != pool.table("b")[1]


def test_what_a_gone_parent_wrote_behind_the_shared_part_is_overwritten() -> None:
    pool = BlockPool(2, 4)
    pool.allocate("parent", [1, 2, 3])
    pool.fork("parent", "child", 1)
    pool.free("parent")
    pool.append("child", [7, 8])
    assert pool.tokens("child") == (1, 7, 8)
    assert pool.num_copies == 0


@given(st.lists(st.integers(0, 60), max_size=20), st.integers(1, 20))
def test_paged_slots_are_what_a_pool_gives_out(lengths: list[int], size: int) -> None:
    pool = BlockPool(1300, size)
    for name, length in enumerate(lengths):
        pool.allocate(name, [0] * length)
    assert paged_slots(lengths, size) == (1300 - pool.num_free) * size


def test_mean_waste_over_all_remainders_is_half_a_block_less_half_a_token() -> None:
    lengths = range(1, 16 * 40 + 1)
    assert (paged_slots(lengths, 16) - sum(lengths)) / len(lengths) == (16 - 1) / 2


def test_bad_names_and_sizes_are_named() -> None:
    with pytest.raises(ValueError, match="^block_size must be"):
        BlockPool(1, 0)
    with pytest.raises(ValueError, match="^block_size must be"):
        paged_slots([1], 0)
    pool = BlockPool(2, 2)
    pool.allocate("a", [1])
    with pytest.raises(ValueError, match="^request must be a name not in use, got 'a'"):
        pool.allocate("a", [1])
    with pytest.raises(ValueError, match="^num_tokens must be at most the parent's 1, got 2"):
        pool.fork("a", "b", 2)
