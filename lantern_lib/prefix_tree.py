"""A radix tree of cached prefixes: longest match, holding, and eviction of what was used least recently."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from lantern_lib.units import require_int


@dataclass(eq=False)
class Node:
    """A run of tokens after its parent's. ``holders`` counts the requests that read it now."""

    tokens: tuple[int, ...]
    parent: Node | None
    children: dict[int, Node] = field(default_factory=dict)
    holders: int = 0
    last_used: int = 0


@dataclass(frozen=True)
class Match:
    """A cached prefix that stays while it is held. ``num_tokens`` are found [tokens]; ``node`` is where it ends."""

    num_tokens: int
    node: Node


def _common(left: Sequence[int], right: Sequence[int]) -> int:
    return next((i for i, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), min(len(left), len(right)))


class PrefixTree:
    """Prefixes of earlier requests, of which each token is stored once.

    Parameters
    ----------
    capacity_tokens : int
        Tokens that the tree may hold [tokens].

    Examples
    --------
    >>> tree = PrefixTree(capacity_tokens=100)
    >>> tree.insert([1, 2, 3, 4]), tree.insert([1, 2, 9])
    (4, 1)
    >>> tree.match([1, 2, 3, 7]), tree.num_tokens
    (3, 5)
    """

    def __init__(self, capacity_tokens: int) -> None:
        self.capacity_tokens = require_int("capacity_tokens", capacity_tokens)
        self.num_tokens = 0
        self.root = Node((), None, holders=1)  # held by the tree itself, so it is never evicted
        self._clock = 0

    def match(self, tokens: Sequence[int]) -> int:
        """Return how many leading tokens are cached, without using them.

        Parameters
        ----------
        tokens : sequence of int
            A prompt.

        Returns
        -------
        int
            Length of the longest cached prefix [tokens].
        """
        node, found = self.root, 0
        while found < len(tokens) and (child := node.children.get(tokens[found])):
            same = _common(child.tokens, tokens[found:])
            node, found = child, found + same
            if same < len(child.tokens):
                break
        return found

    def hold(self, tokens: Sequence[int]) -> Match:
        """Find the longest cached prefix and keep it from eviction until it is released.

        Parameters
        ----------
        tokens : sequence of int
            A prompt.

        Returns
        -------
        Match
            What was found, for :meth:`release`.
        """
        node, found = self._walk(tokens)
        for each in self._path(node):
            each.holders += 1
        return Match(found, node)

    def release(self, match: Match) -> None:
        """Let go of a prefix.

        Parameters
        ----------
        match : Match
            What :meth:`hold` returned, once.

        Raises
        ------
        ValueError
            If it is not held any more.
        """
        path = list(self._path(match.node))
        if any(each.holders < 1 for each in path):
            raise ValueError(f"match must be held, got one of {match.num_tokens} tokens that is not. Release it once.")
        for each in path:
            each.holders -= 1

    def insert(self, tokens: Sequence[int]) -> int:
        """Store a sequence; if it does not fit even after eviction, as much of its beginning as fits.

        Parameters
        ----------
        tokens : sequence of int
            A prompt, or a prompt with its answer.

        Returns
        -------
        int
            Tokens that were not there before and are now [tokens].
        """
        match = self.hold(tokens)
        missing = len(tokens) - match.num_tokens
        self.evict(missing - (self.capacity_tokens - self.num_tokens))
        self.release(match)
        new = tuple(tokens[match.num_tokens :][: self.capacity_tokens - self.num_tokens])
        if new:
            child = Node(new, match.node, last_used=self._clock)
            match.node.children[new[0]] = child
            self.num_tokens += len(new)
        return len(new)

    def evict(self, num_tokens: int) -> int:
        """Drop unheld leaves, the least recently used first, until enough tokens are gone.

        Parameters
        ----------
        num_tokens : int
            How many to drop at least; nothing happens for 0 or less [tokens].

        Returns
        -------
        int
            Tokens dropped: whole leaves, so perhaps more, or fewer if all others are held [tokens].
        """
        gone = 0
        while gone < num_tokens:
            leaves = [n for n in self._nodes() if not n.children and not n.holders]
            if not leaves:
                break
            oldest = min(leaves, key=lambda n: n.last_used)
            if oldest.parent is not None:
                del oldest.parent.children[oldest.tokens[0]]
            gone += len(oldest.tokens)
            self.num_tokens -= len(oldest.tokens)
        return gone

    def sequences(self) -> list[tuple[int, ...]]:
        """Return every cached sequence from the root to a leaf.

        Returns
        -------
        list of tuple of int
            One for each leaf; empty for an empty tree.
        """
        leaves = [n for n in self._nodes() if not n.children]
        return [tuple(t for each in reversed(list(self._path(leaf))) for t in each.tokens) for leaf in leaves]

    def _walk(self, tokens: Sequence[int]) -> tuple[Node, int]:
        """Go down as far as the tokens lead, cut an edge where they leave it, and mark the way as used."""
        self._clock += 1
        node, found = self.root, 0
        while found < len(tokens) and (child := node.children.get(tokens[found])):
            same = _common(child.tokens, tokens[found:])
            if same < len(child.tokens):
                child = self._cut(child, same)
            child.last_used = self._clock
            node, found = child, found + same
        return node, found

    def _cut(self, node: Node, length: int) -> Node:
        """Cut an edge in two. The lower part stays the same object, for those who hold it."""
        upper = Node(node.tokens[:length], node.parent, {node.tokens[length]: node}, node.holders, node.last_used)
        if node.parent is not None:
            node.parent.children[upper.tokens[0]] = upper
        node.tokens, node.parent = node.tokens[length:], upper
        return upper

    def _path(self, node: Node) -> Iterator[Node]:
        """Go from a node up to, but not including, the root."""
        while node.parent is not None:
            yield node
            node = node.parent

    def _nodes(self) -> Iterator[Node]:
        stack = list(self.root.children.values())
        while stack:
            node = stack.pop()
            yield node
            stack += node.children.values()
