"""The price of a token, the capacity behind a fixed price, and where the two meet."""

from __future__ import annotations

from dataclasses import dataclass

from lantern_lib.units import require_non_negative, require_positive, require_share

#: Hours of a month as cloud providers count it: 8,760 hours of a year over twelve.
HOURS_PER_MONTH = 730.0


@dataclass(frozen=True)
class TokenPrices:
    """What a provider charges for one token of each kind.

    Parameters
    ----------
    input_price, output_price : float
        A prompt token, and a generated one [dollars].
    cached_read_price, cached_write_price : float, optional
        A prompt token that is read from, or written to, the provider's prompt cache; without it, the input
        price [dollars].
    """

    input_price: float
    output_price: float
    cached_read_price: float | None = None
    cached_write_price: float | None = None

    def __post_init__(self) -> None:
        hint = "Prices are for one token: 3 dollars a million are 3e-6."
        require_positive("input_price", self.input_price, hint)
        require_positive("output_price", self.output_price, hint)
        for name in ("cached_read_price", "cached_write_price"):
            if getattr(self, name) is not None:
                require_non_negative(name, getattr(self, name), hint)


def blended_price(
    prices: TokenPrices, output_fraction: float, *, read_fraction: float = 0.0, write_fraction: float = 0.0
) -> float:
    """Return the mean price of a token of a given mix.

    Parameters
    ----------
    prices : TokenPrices
        The price list.
    output_fraction : float
        Share of all tokens that are output [ratio].
    read_fraction, write_fraction : float
        Shares of the *input* tokens that are read from and written to the prompt cache [ratio].

    Returns
    -------
    float
        Dollars for one token, whatever its kind [dollars].

    Raises
    ------
    ValueError
        If a share is outside [0, 1] or both shares of the input exceed it.

    Notes
    -----
    ``c_in (1 − f) + c_out f`` without a cache; with one, c_in is itself a mean. Page on capacity types.

    Examples
    --------
    >>> prices = TokenPrices(3e-6, 12e-6)
    >>> round(blended_price(prices, 0.1) * 1e6, 2), round(blended_price(prices, 0.5) * 1e6, 2)
    (3.9, 7.5)
    """
    output = require_share("output_fraction", output_fraction)
    read = require_share("read_fraction", read_fraction)
    write = require_share("write_fraction", write_fraction)
    if read + write > 1:
        raise ValueError(
            f"write_fraction must be a fraction of at most {1 - read:g} beside read_fraction, got {write:g}."
            " A prompt token is read, written or neither."
        )
    plain = prices.input_price
    read_price = plain if prices.cached_read_price is None else prices.cached_read_price
    write_price = plain if prices.cached_write_price is None else prices.cached_write_price
    input_price = plain * (1 - read - write) + read_price * read + write_price * write
    return input_price * (1 - output) + prices.output_price * output


@dataclass(frozen=True)
class MixCapacity:
    """What a fixed amount of capacity can serve, which depends on the mix of input and output.

    Parameters
    ----------
    work : float
        What the capacity can do in the period, in any unit of work: input-token equivalents of a provisioned
        unit, or busy seconds of a replica [work].
    prefill_weight, decode_weight : float
        Work of one input token, and of one output token [work].
    """

    work: float
    prefill_weight: float = 1.0
    decode_weight: float = 1.0

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            require_positive(name, value)

    def tokens(self, output_fraction: float) -> float:
        """Return the tokens of a mix that can be served.

        Parameters
        ----------
        output_fraction : float
            Share of all tokens that are output [ratio].

        Returns
        -------
        float
            Input and output tokens together in the period [tokens].

        Raises
        ------
        ValueError
            If `output_fraction` is outside [0, 1].

        Notes
        -----
        ``work / (w_in (1 − f) + w_out f)``. Equal weights make it a constant.

        Examples
        --------
        >>> MixCapacity(5.2e9, 1, 4).tokens(0.1), MixCapacity(5.2e9, 1, 4).tokens(0.5)
        (4000000000.0, 2080000000.0)
        """
        output = require_share("output_fraction", output_fraction)
        return self.work / (self.prefill_weight * (1 - output) + self.decode_weight * output)

    @classmethod
    def measured(cls, tokens: float, output_fraction: float, *, decode_weight: float = 1.0) -> MixCapacity:
        """Return the capacity that serves a number of tokens at the mix at which it was measured.

        Parameters
        ----------
        tokens : float
            Input and output tokens served in the period [tokens].
        output_fraction : float
            Share of them that were output [ratio].
        decode_weight : float
            How many input tokens one output token counts for [ratio].

        Returns
        -------
        MixCapacity
            With a prefill weight of 1; its work is in input-token equivalents.

        Raises
        ------
        ValueError
            If a value is out of range.

        Examples
        --------
        >>> round(MixCapacity.measured(4e9, 0.1, decode_weight=4).work / 1e9, 1)
        5.2
        """
        weight = require_positive("decode_weight", decode_weight)
        output = require_share("output_fraction", output_fraction)
        return cls(require_positive("tokens", tokens) * (1 - output + weight * output), 1.0, weight)


@dataclass(frozen=True)
class Provisioned:
    """A commitment: so many dollars a month for so much capacity, used or not."""

    monthly_dollars: float
    capacity: MixCapacity

    def __post_init__(self) -> None:
        require_positive("monthly_dollars", self.monthly_dollars)

    def utilization_to_pay(self, prices: TokenPrices, output_fraction: float) -> float:
        """Return the share of the capacity above which the commitment is cheaper than paying per token.

        Parameters
        ----------
        prices : TokenPrices
            The per-token alternative.
        output_fraction : float
            Share of all tokens that are output [ratio].

        Returns
        -------
        float
            Above 1 it never pays: even full, the capacity costs more [ratio].

        Raises
        ------
        ValueError
            If `output_fraction` is outside [0, 1].

        Examples
        --------
        >>> unit = Provisioned(12_000, MixCapacity.measured(4e9, 0.1))
        >>> round(unit.utilization_to_pay(TokenPrices(3e-6, 12e-6), 0.1), 3)
        0.769
        """
        price = blended_price(prices, output_fraction)
        return break_even_utilization(self.monthly_dollars, price, self.capacity.tokens(output_fraction))


def break_even_tokens(fixed_dollars: float, token_price: float, *, own_token_cost: float = 0.0) -> float:
    """Return the tokens at which a fixed cost equals the bill per token that it replaces.

    Parameters
    ----------
    fixed_dollars : float
        Cost of the period that does not depend on use [dollars].
    token_price : float
        Mean price of a token bought one by one, at the mix [dollars].
    own_token_cost : float
        What each token still costs beside the fixed part [dollars].

    Returns
    -------
    float
        Tokens of the same period [tokens].

    Raises
    ------
    ValueError
        If a value is out of range, or `own_token_cost` is not below the price: then no volume is enough.

    Notes
    -----
    ``fixed / (price − own)``. Any period will do: a month of a commitment, an hour of a replica.

    Examples
    --------
    >>> round(break_even_tokens(12_000, 3.9e-6) / 1e9, 3)
    3.077
    """
    fixed = require_positive("fixed_dollars", fixed_dollars)
    price = require_positive("token_price", token_price)
    own = require_non_negative("own_token_cost", own_token_cost)
    if own >= price:
        raise ValueError(
            f"own_token_cost must be below token_price = {price:g}, got {own:g}. No volume would pay for the rest."
        )
    return fixed / (price - own)


def break_even_utilization(
    fixed_dollars: float, token_price: float, capacity_tokens: float, *, own_token_cost: float = 0.0
) -> float:
    """Return the share of a capacity that has to be used before it is cheaper than paying per token.

    Parameters
    ----------
    fixed_dollars : float
        Cost of the capacity in a period, used or not [dollars].
    token_price : float
        Mean price of a token bought one by one, at the mix [dollars].
    capacity_tokens : float
        Tokens that the capacity can serve in the period, at the same mix [tokens].
    own_token_cost : float
        As in :func:`break_even_tokens` [dollars].

    Returns
    -------
    float
        The utilisation u*; above 1 the capacity never pays [ratio].

    Raises
    ------
    ValueError
        As :func:`break_even_tokens`, or if the capacity is not above 0.

    Notes
    -----
    ``break_even_tokens / capacity``. Page on capacity types.

    Examples
    --------
    >>> round(break_even_utilization(12_000, 7.5e-6, 4e9), 3)
    0.4
    >>> round(break_even_utilization(12, 2e-6, 38.3e6), 2)  # an hour of a replica of four GPUs
    0.16
    """
    capacity = require_positive("capacity_tokens", capacity_tokens)
    return break_even_tokens(fixed_dollars, token_price, own_token_cost=own_token_cost) / capacity
