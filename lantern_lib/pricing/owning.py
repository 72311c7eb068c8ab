"""What it costs to run a model on one's own machines, with the people who run it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from lantern_lib.pricing.rates import HOURS_PER_MONTH, break_even_tokens
from lantern_lib.units import require_int, require_non_negative, require_positive


@dataclass(frozen=True)
class Fleet:
    """Rented or owned GPUs that grow by whole groups, and a team whose cost does not depend on the volume.

    Parameters
    ----------
    group_gpus : int
        GPUs of one group, the step in which the fleet grows [count].
    gpu_hour_dollars : float
        One GPU for one hour, busy or idle [dollars].
    people_dollars : float
        Engineers, on-call, security review and evaluation in a month; 0 leaves them out [dollars].
    group_capacity_tokens : float
        Most tokens that one group serves in a month at the mix and the utilisation planned for [tokens].
    hours_per_month : float
        Hours that the month has [hours].
    """

    group_gpus: int
    gpu_hour_dollars: float
    people_dollars: float
    group_capacity_tokens: float = math.inf
    hours_per_month: float = HOURS_PER_MONTH

    def __post_init__(self) -> None:
        require_int("group_gpus", self.group_gpus)
        require_positive("gpu_hour_dollars", self.gpu_hour_dollars)
        require_non_negative("people_dollars", self.people_dollars)
        require_positive("hours_per_month", self.hours_per_month)
        if self.group_capacity_tokens != math.inf:
            require_positive("group_capacity_tokens", self.group_capacity_tokens)

    @property
    def group_dollars(self) -> float:
        """GPUs of one group for a month [dollars]."""
        return self.group_gpus * self.gpu_hour_dollars * self.hours_per_month

    def groups(self, monthly_tokens: float) -> int:
        """Return the groups that a volume needs.

        Parameters
        ----------
        monthly_tokens : float
            Volume of the month [tokens].

        Returns
        -------
        int
            At least 1: an empty machine is paid too [count].

        Raises
        ------
        ValueError
            If the volume is negative.

        Examples
        --------
        >>> Fleet(8, 3, 25_000, group_capacity_tokens=30e9).groups(40e9)
        2
        """
        volume = require_non_negative("monthly_tokens", monthly_tokens)
        return max(math.ceil(volume / self.group_capacity_tokens), 1)

    def monthly_dollars(self, monthly_tokens: float) -> float:
        """Return the cost of a month.

        Parameters
        ----------
        monthly_tokens : float
            Volume of the month [tokens].

        Returns
        -------
        float
            GPUs of all groups, and the people once [dollars].

        Raises
        ------
        ValueError
            If the volume is negative.

        Examples
        --------
        >>> Fleet(8, 3, 25_000).monthly_dollars(1e9)
        42520.0
        """
        return self.groups(monthly_tokens) * self.group_dollars + self.people_dollars

    def token_dollars(self, monthly_tokens: float) -> float:
        """Return what one token costs at a volume.

        Parameters
        ----------
        monthly_tokens : float
            Volume of the month, above 0 [tokens].

        Returns
        -------
        float
            Dollars for a token, input or output [dollars].

        Raises
        ------
        ValueError
            If the volume is not above 0.

        Notes
        -----
        ``monthly cost / monthly tokens``: falls as one over the volume within a group. Page on capacity types.

        Examples
        --------
        >>> [round(Fleet(8, 3, 25_000).token_dollars(n * 1e9) * 1e6, 2) for n in (1, 5, 10, 20)]
        [42.52, 8.5, 4.25, 2.13]
        """
        volume = require_positive("monthly_tokens", monthly_tokens)
        return self.monthly_dollars(volume) / volume

    def crossover_tokens(self, token_price: float) -> float:
        """Return the smallest volume at which owning costs no more than paying per token.

        Parameters
        ----------
        token_price : float
            Blended price of a token [dollars].

        Returns
        -------
        float
            Volume of a month, or infinity if full groups never pay [tokens].

        Raises
        ------
        ValueError
            If the price is not above 0.

        Notes
        -----
        With g groups the costs meet at ``(g × group + people) / price``, which counts if g groups can serve it. Just
        above a full fleet the next group may put owning behind again for a while; the first crossing is returned.

        Examples
        --------
        >>> round(Fleet(8, 3, 25_000).crossover_tokens(3.9e-6) / 1e9, 1)
        10.9
        """
        price = require_positive("token_price", token_price)
        if self.group_capacity_tokens == math.inf:
            return break_even_tokens(self.group_dollars + self.people_dollars, price)
        gained = price * self.group_capacity_tokens - self.group_dollars  # what one full group saves
        if gained <= 0:
            return math.inf
        groups = max(math.ceil(self.people_dollars / gained - 1e-12), 1)
        return break_even_tokens(groups * self.group_dollars + self.people_dollars, price)
