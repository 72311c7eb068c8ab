"""The terms of a priced prompt cache, and the bill of a call under them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from lantern_lib.units import require_int, require_non_negative, require_positive

MINUTE, HOUR = 60.0, 3600.0


@dataclass(frozen=True)
class Bill:
    """What a call, or many, sent and got, and what it cost.

    Tokens are counts. ``cost`` is in the unit of the prices: by default one fresh input token costs 1, and the
    cost is in token-prices.
    """

    read_tokens: int = 0
    written_tokens: int = 0
    fresh_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0

    @property
    def input_tokens(self) -> int:
        """Everything that was sent [tokens]."""
        return self.read_tokens + self.written_tokens + self.fresh_tokens

    def __add__(self, other: Bill) -> Bill:
        return Bill(
            self.read_tokens + other.read_tokens,
            self.written_tokens + other.written_tokens,
            self.fresh_tokens + other.fresh_tokens,
            self.output_tokens + other.output_tokens,
            self.cost + other.cost,
        )


@dataclass(frozen=True)
class CachePolicy:
    """Terms of a prompt cache, as a provider states them.

    Parameters
    ----------
    name : str
        Whose terms these are [text].
    lifetime_seconds : float
        How long an entry lives after it was written or last read [seconds].
    write_price : float
        Price of a token that is written, in fresh input tokens [ratio].
    extended_lifetime_seconds, extended_write_price : float
        The same for the longer lifetime on offer [seconds, ratio].
    read_price : float
        Price of a token that is read from the cache, in fresh input tokens [ratio].
    minimum_tokens : int
        Shortest prefix that is stored [tokens].
    granularity_tokens : int
        Prefixes are found in whole multiples of this [tokens].
    max_breakpoints : int
        How many places of one request may be stored [count].
    lookback_blocks : int
        How many blocks, the marked one included, are searched backwards for an entry; 0 for no limit [count].
    automatic : bool
        Whether the end of every request is a breakpoint by itself.
    source : str
        Where the terms stand [text].
    """

    name: str
    lifetime_seconds: float
    write_price: float
    extended_lifetime_seconds: float
    extended_write_price: float
    read_price: float = 0.1
    minimum_tokens: int = 1024
    granularity_tokens: int = 1
    max_breakpoints: int = 4
    lookback_blocks: int = 0
    automatic: bool = False
    source: str = ""

    def __post_init__(self) -> None:
        for name in ("lifetime_seconds", "extended_lifetime_seconds", "write_price", "extended_write_price"):
            require_positive(name, getattr(self, name))
        if require_non_negative("read_price", self.read_price) >= 1:
            raise ValueError(
                f"read_price must be below 1, got {self.read_price!r}."
                " It counts in fresh input tokens; at 1 a cache saves nothing."
            )
        require_int("minimum_tokens", self.minimum_tokens, minimum=0)
        require_int("granularity_tokens", self.granularity_tokens)
        require_int("max_breakpoints", self.max_breakpoints)
        require_int("lookback_blocks", self.lookback_blocks, minimum=0, hint="0 stands for no limit.")

    def extended(self) -> CachePolicy:
        """The same terms with the longer lifetime and its write price."""
        return replace(
            self,
            lifetime_seconds=self.extended_lifetime_seconds,
            write_price=self.extended_write_price,
            name=f"{self.name}, longer lifetime",
        )

    def found(self, num_tokens: int) -> int:
        """Tokens of a matching prefix that the cache gives back: whole steps, and none below the minimum."""
        whole = num_tokens - num_tokens % self.granularity_tokens
        return whole if whole >= self.minimum_tokens else 0

    def bill(
        self, prompt_len: int, read: int, stored: int, output_len: int = 0, *, input_price: float, output_price: float
    ) -> Bill:
        """Bill of one call that reads ``read`` tokens and leaves its first ``stored`` tokens in the cache."""
        written = max(stored - read, 0)
        fresh = prompt_len - read - written
        sent = self.read_price * read + self.write_price * written + fresh
        return Bill(read, written, fresh, output_len, input_price * sent + output_price * output_len)


ANTHROPIC = CachePolicy(
    "Anthropic",
    lifetime_seconds=5 * MINUTE,
    write_price=1.25,
    extended_lifetime_seconds=HOUR,
    extended_write_price=2.0,
    minimum_tokens=1024,
    lookback_blocks=20,
    source="Anthropic, prompt caching page, November 2026; the minimum is 512 to 4,096 tokens by model",
)
OPENAI = CachePolicy(
    "OpenAI",
    lifetime_seconds=30 * MINUTE,
    write_price=1.25,
    extended_lifetime_seconds=12 * HOUR,
    extended_write_price=2.5,
    minimum_tokens=1024,
    automatic=True,
    source="OpenAI, prompt caching page, November 2026, newest models",
)
PROVIDERS = {policy.name: policy for policy in (ANTHROPIC, OPENAI)}


def break_even_uses(policy: CachePolicy) -> float:
    """Return how often a prefix has to be used before storing it is cheaper than sending it fresh.

    Parameters
    ----------
    policy : CachePolicy
        The terms.

    Returns
    -------
    float
        Uses, the first included; the next whole number above it is the first that pays [count].

    Notes
    -----
    One write and ``n − 1`` reads cost ``w + r (n − 1)``, and ``n`` fresh ones cost ``n``. They meet at
    ``(w − r) / (1 − r)``. Assumes that every later use comes within the lifetime. Derived on page D2.

    Examples
    --------
    >>> round(break_even_uses(ANTHROPIC), 2), round(break_even_uses(ANTHROPIC.extended()), 2)
    (1.28, 2.11)
    """
    return (policy.write_price - policy.read_price) / (1 - policy.read_price)
