"""The blocks of one replica: who holds how many, and which named blocks stay for later prompts."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

#: What a request got: how many leading blocks were there already, how many after them the host had, and the names
#: it now holds.
Grant = tuple[int, int, Sequence[int]]


class Pool:
    """Counts of blocks, and the names of those that prompts share.

    ``private`` counts blocks that one request holds and nobody else can use. A named block is either held,
    with a count of holders, or idle: nobody reads it, it keeps its content, and it is given away, the one idle
    longest first, when somebody needs room. What is given away moves to the host's memory, if there is any set
    aside, and the oldest there is forgotten. Which block is where in memory plays no part here; ``kv_blocks.BlockPool``
    shows that.

    Parameters
    ----------
    num_blocks : int
        Blocks in memory [blocks].
    host_blocks : int
        Blocks in the host's memory, from where they can be loaded [blocks].

    Examples
    --------
    >>> pool = Pool(num_blocks=4)
    >>> pool.admit(total=3, names=[7, 8], most_found=2)
    (0, 0, [7, 8])
    >>> pool.release([7, 8], private=1)
    >>> pool.admit(total=4, names=[7, 8, 9], most_found=3)
    (2, 0, [7, 8, 9])
    >>> pool.available
    0
    """

    __slots__ = ("holders", "host", "host_blocks", "idle", "num_blocks", "private")

    def __init__(self, num_blocks: int, host_blocks: int = 0) -> None:
        self.num_blocks, self.host_blocks = num_blocks, host_blocks
        self.private = 0
        self.holders: dict[int, int] = {}
        self.idle: OrderedDict[int, None] = OrderedDict()
        self.host: OrderedDict[int, None] = OrderedDict()

    @property
    def available(self) -> int:
        """Blocks that nobody holds, idle ones included; negative when more was promised than there is [blocks]."""
        return self.num_blocks - self.private - len(self.holders)

    def find(self, names: Sequence[int], most: int) -> tuple[int, int]:
        """Return how many leading names are cached, and how many after them the host has, at most `most` [blocks]."""
        found = loaded = 0
        for name in names[:most]:
            if not loaded and (name in self.holders or name in self.idle):
                found += 1
            elif name in self.host:
                loaded += 1
            else:
                break
        return found, loaded

    def admit(self, total: int, names: Sequence[int] = (), most_found: int = 0) -> Grant | None:
        """Give a request its blocks, or nothing at all if they do not suffice.

        Parameters
        ----------
        total : int
            Blocks it needs, the shared ones included [blocks].
        names : sequence of int
            Names of its prompt's full blocks, in order.
        most_found : int
            At most so many may come from the cache: one token at least has to be computed [blocks].

        Returns
        -------
        tuple or None
            Blocks found in the cache, blocks to be loaded from the host, and the names it holds from now on; None if
            there is no room.
        """
        if not names:
            if total > self.available:
                return None
            self.private += total
            self.trim()
            return 0, 0, ()
        found, loaded = self.find(names, most_found)
        woken = sum(name in self.idle for name in names[:found])
        if total - found + woken > self.available:
            return None
        held = list(names[:found])
        for name in held:
            self.idle.pop(name, None)
            self.holders[name] = self.holders.get(name, 0) + 1
        for name in names[found:]:
            # A name that is cached but could not be used gets a second, private copy.
            if name not in self.holders and name not in self.idle:
                self.holders[name] = 1
                held.append(name)
                self.host.pop(name, None)
        self.private += total - len(held)
        self.trim()
        return found, loaded, held

    def release(self, names: Sequence[int], private: int, num_computed: int | None = None) -> None:
        """Take a request's blocks back; its named ones stay as idle.

        Parameters
        ----------
        names : sequence of int
            What it held.
        private : int
            Its other blocks [blocks].
        num_computed : int, optional
            Only so many of the names have their content; the rest is forgotten [blocks].
        """
        self.private -= private
        # The end of a prompt goes first, so that what is left is still a beginning.
        for position in range(len(names) - 1, -1, -1):
            name = names[position]
            count = self.holders[name] - 1
            if count:
                self.holders[name] = count
            else:
                del self.holders[name]
                if num_computed is None or position < num_computed:
                    self.idle[name] = None

    def trim(self) -> None:
        """Give idle blocks away until what is held has its room."""
        if self.idle:
            for _ in range(min(len(self.idle), len(self.idle) - self.available)):
                name, _ = self.idle.popitem(last=False)
                self.host[name] = None
            while len(self.host) > self.host_blocks:
                self.host.popitem(last=False)
