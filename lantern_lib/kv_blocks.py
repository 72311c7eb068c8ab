"""A cache in blocks: a table for each request, shared blocks, copy on write, preemption."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from lantern_lib.units import require_int


class OutOfBlocksError(RuntimeError):
    """The free blocks do not suffice. Nothing was changed; preempt somebody and ask again."""


def paged_slots(lengths: Sequence[int], block_size: int) -> int:
    """Return the token-slots that requests hold when each rounds up to whole blocks.

    Parameters
    ----------
    lengths : sequence of int
        Cached tokens of each request [tokens].
    block_size : int
        Tokens of one block [tokens].

    Returns
    -------
    int
        Token-slots in all blocks that are given out [tokens].

    Raises
    ------
    ValueError
        If `block_size` is below 1 or a length below 0.

    Notes
    -----
    ``Σ block_size ⌈length / block_size⌉``. Derived on page B2.

    Examples
    --------
    >>> paged_slots([1, 16, 17], block_size=16)
    64
    """
    require_int("block_size", block_size)
    for index, length in enumerate(lengths):
        require_int(f"lengths[{index}]", length, minimum=0)
    return sum(-(-length // block_size) * block_size for length in lengths)


class BlockPool:
    """The cache as fixed blocks, each request with a table of them.

    A block holds the tokens themselves in place of their keys and values, so that what a request would read
    can be checked.

    Parameters
    ----------
    num_blocks : int
        Blocks in memory [blocks].
    block_size : int
        Tokens of one block [tokens].

    Examples
    --------
    >>> pool = BlockPool(num_blocks=4, block_size=2)
    >>> pool.allocate("a", [1, 2, 3])
    >>> pool.fork("a", "b")
    >>> pool.append("b", [4])
    >>> pool.tokens("a"), pool.tokens("b"), pool.num_free, pool.num_copies
    ((1, 2, 3), (1, 2, 3, 4), 1, 1)
    """

    def __init__(self, num_blocks: int, block_size: int) -> None:
        self.num_blocks = require_int("num_blocks", num_blocks)
        self.block_size = require_int("block_size", block_size)
        self.num_copies = 0
        self._free = list(range(num_blocks - 1, -1, -1))
        self._content: dict[int, list[int]] = {}
        self._references: dict[int, int] = {}
        self._tables: dict[Hashable, list[int]] = {}
        self._lengths: dict[Hashable, int] = {}

    @property
    def num_free(self) -> int:
        """Blocks that nobody holds [blocks]."""
        return len(self._free)

    @property
    def requests(self) -> tuple[Hashable, ...]:
        """Names of the requests that hold a table."""
        return tuple(self._tables)

    def table(self, request: Hashable) -> tuple[int, ...]:
        """Return the numbers of a request's blocks, in order.

        Parameters
        ----------
        request : hashable
            Its name.

        Returns
        -------
        tuple of int
            Block numbers; neighbours need not be neighbours in memory.
        """
        return tuple(self._tables[self._known(request)])

    def references(self, block: int) -> int:
        """Return how many tables point at a block, 0 for a free one.

        Parameters
        ----------
        block : int
            Its number.

        Returns
        -------
        int
            Tables [count].
        """
        return self._references.get(block, 0)

    def tokens(self, request: Hashable) -> tuple[int, ...]:
        """Read a request's tokens through its table.

        Parameters
        ----------
        request : hashable
            Its name.

        Returns
        -------
        tuple of int
            All its tokens.
        """
        read = [token for block in self._tables[self._known(request)] for token in self._content[block]]
        return tuple(read[: self._lengths[request]])

    def allocate(self, request: Hashable, tokens: Sequence[int]) -> None:
        """Give a new request the blocks for its first tokens.

        Parameters
        ----------
        request : hashable
            A name that is not in use.
        tokens : sequence of int
            What to store, possibly nothing.

        Raises
        ------
        ValueError
            If the name is in use.
        OutOfBlocksError
            If there are too few free blocks; then nothing was changed.
        """
        self._new(request)
        self._require(self._needed(0, len(tokens)))
        self._tables[request], self._lengths[request] = [], 0
        self.append(request, tokens)

    def append(self, request: Hashable, tokens: Sequence[int]) -> None:
        """Write more tokens; a last block that others see too is copied first.

        Parameters
        ----------
        request : hashable
            Its name.
        tokens : sequence of int
            What to add.

        Raises
        ------
        ValueError
            If there is no such request.
        OutOfBlocksError
            If there are too few free blocks; then nothing was changed.
        """
        table, length = self._tables[self._known(request)], self._lengths[request]
        used = length % self.block_size
        copies = bool(tokens and used and self._references[table[-1]] > 1)
        self._require(self._needed(length, len(tokens)) + copies)
        if copies:
            shared = table[-1]
            table[-1] = self._take()
            self._content[table[-1]] = self._content[shared][:used]
            self._references[shared] -= 1
            self.num_copies += 1
        for token in tokens:
            used = self._lengths[request] % self.block_size
            if used == 0:
                table.append(self._take())
            # What lay behind the request's own end was somebody else's, and they are gone.
            self._content[table[-1]][used:] = [token]
            self._lengths[request] += 1

    def fork(self, parent: Hashable, child: Hashable, num_tokens: int | None = None) -> None:
        """Let a new request begin with another one's tokens by pointing at the same blocks.

        Parameters
        ----------
        parent : hashable
            Who has the tokens.
        child : hashable
            A name that is not in use.
        num_tokens : int, optional
            How many of them, all if not given [tokens].

        Raises
        ------
        ValueError
            If the parent is unknown, the child's name in use, or the parent shorter than `num_tokens`.
        """
        length = self._lengths[self._known(parent)]
        self._new(child)
        shared = length if num_tokens is None else require_int("num_tokens", num_tokens, minimum=0)
        if shared > length:
            raise ValueError(f"num_tokens must be at most the parent's {length}, got {shared}. Share what is there.")
        self._tables[child] = self._tables[parent][: -(-shared // self.block_size)]
        self._lengths[child] = shared
        for block in self._tables[child]:
            self._references[block] += 1

    def free(self, request: Hashable) -> None:
        """Give back a finished request's blocks; those that others hold stay.

        Parameters
        ----------
        request : hashable
            Its name, which may be used again afterwards.

        Raises
        ------
        ValueError
            If there is no such request, for example because it was freed before.
        """
        for block in self._tables.pop(self._known(request)):
            self._references[block] -= 1
            if not self._references[block]:
                del self._references[block], self._content[block]
                self._free.append(block)
        del self._lengths[request]

    def preempt(self, request: Hashable) -> tuple[int, ...]:
        """Take a running request's blocks away, to be restored later.

        Parameters
        ----------
        request : hashable
            Its name.

        Returns
        -------
        tuple of int
            Its tokens: what :meth:`allocate` needs to compute the cache again.

        Raises
        ------
        ValueError
            If there is no such request.
        """
        tokens = self.tokens(request)
        self.free(request)
        return tokens

    def _needed(self, length: int, more: int) -> int:
        return -(-(length + more) // self.block_size) - -(-length // self.block_size)

    def _require(self, blocks: int) -> None:
        if blocks > len(self._free):
            raise OutOfBlocksError(f"needs {blocks} blocks and {len(self._free)} are free; preempt somebody first")

    def _take(self) -> int:
        block = self._free.pop()
        self._content[block], self._references[block] = [], 1
        return block

    def _known(self, request: Hashable) -> Hashable:
        if request not in self._tables:
            raise ValueError(f"request must hold a table, got {request!r}. It was never allocated, or freed before.")
        return request

    def _new(self, request: Hashable) -> None:
        if request in self._tables:
            raise ValueError(f"request must be a name not in use, got {request!r}. Free it first.")
