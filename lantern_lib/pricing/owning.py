"""What it costs to run a model on one's own machines, with the people who run it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from lantern_lib.capacity import SECONDS_PER_HOUR, Demand
from lantern_lib.pricing.rates import HOURS_PER_MONTH, break_even_tokens, break_even_utilization
from lantern_lib.units import require_fraction, require_int, require_non_negative, require_positive, round_up


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
    spare_groups : int
        Groups that are paid and serve nobody, so that one that fails is replaced at once [count].
    """

    group_gpus: int
    gpu_hour_dollars: float
    people_dollars: float
    group_capacity_tokens: float = math.inf
    hours_per_month: float = HOURS_PER_MONTH
    spare_groups: int = 0

    def __post_init__(self) -> None:
        require_int("group_gpus", self.group_gpus)
        require_int("spare_groups", self.spare_groups, minimum=0)
        require_positive("gpu_hour_dollars", self.gpu_hour_dollars)
        require_non_negative("people_dollars", self.people_dollars)
        require_positive("hours_per_month", self.hours_per_month)
        if self.group_capacity_tokens != math.inf:
            require_positive("group_capacity_tokens", self.group_capacity_tokens)

    @property
    def group_dollars(self) -> float:
        """GPUs of one group for a month [dollars]."""
        return self.group_gpus * self.gpu_hour_dollars * self.hours_per_month

    @property
    def standing_dollars(self) -> float:
        """People and spare groups for a month, whatever the volume [dollars]."""
        return self.people_dollars + self.spare_groups * self.group_dollars

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
        return max(round_up(volume / self.group_capacity_tokens), 1)

    def monthly_dollars(self, monthly_tokens: float) -> float:
        """Return the cost of a month.

        Parameters
        ----------
        monthly_tokens : float
            Volume of the month [tokens].

        Returns
        -------
        float
            GPUs of all groups, and people and spares once [dollars].

        Raises
        ------
        ValueError
            If the volume is negative.

        Examples
        --------
        >>> Fleet(8, 3, 25_000).monthly_dollars(1e9)
        42520.0
        """
        return self.groups(monthly_tokens) * self.group_dollars + self.standing_dollars

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
        With g groups the costs meet at ``(g × group + standing) / price``, which counts if g groups can serve it. Just
        above a full fleet the next group may put owning behind again for a while; the first crossing is returned.

        Examples
        --------
        >>> round(Fleet(8, 3, 25_000).crossover_tokens(3.9e-6) / 1e9, 1)
        10.9
        """
        price = require_positive("token_price", token_price)
        if self.group_capacity_tokens == math.inf:
            return break_even_tokens(self.group_dollars + self.standing_dollars, price)
        gained = price * self.group_capacity_tokens - self.group_dollars  # what one full group saves
        if gained <= 0:
            return math.inf
        groups = max(round_up(self.standing_dollars / gained), 1)
        return break_even_tokens(groups * self.group_dollars + self.standing_dollars, price)

    def token_dollars_at(self, utilization: float, groups: int = 1) -> float:
        """Return what one token costs on groups that are so busy.

        Parameters
        ----------
        utilization : float
            Share of their capacity that is used, in (0, 1] [ratio].
        groups : int
            Groups that run [count].

        Returns
        -------
        float
            Dollars for a token, input or output [dollars].

        Raises
        ------
        ValueError
            If `utilization` is outside (0, 1], `groups` is no whole number of 1 or more, or no capacity was given.

        Notes
        -----
        ``(groups × group + standing) / (groups × capacity × u)``. Page F2.

        Examples
        --------
        >>> replica = Fleet(4, 3, 0, group_capacity_tokens=38.3e6 * 730)
        >>> round(replica.token_dollars_at(0.65) * 1e6, 2)
        0.48
        """
        used = require_fraction("utilization", utilization)
        return self._paid(groups) / (self._full(groups) * used)

    def utilization_to_pay(self, token_price: float, groups: int = 1) -> float:
        """Return the share of the capacity above which owning is cheaper than paying per token.

        Parameters
        ----------
        token_price : float
            Blended price of a token of an API [dollars].
        groups : int
            Groups that run [count].

        Returns
        -------
        float
            The utilisation u*; above 1 owning never pays [ratio].

        Raises
        ------
        ValueError
            If the price is not above 0, `groups` is no whole number of 1 or more, or no capacity was given.

        Notes
        -----
        :func:`lantern_lib.pricing.break_even_utilization` of everything that is paid. Page F2.

        Examples
        --------
        >>> replica = Fleet(4, 3, 0, group_capacity_tokens=38.3e6 * 730)
        >>> round(replica.utilization_to_pay(2e-6), 2)
        0.16
        """
        return break_even_utilization(self._paid(groups), token_price, self._full(groups))

    def _paid(self, groups: int) -> float:
        return require_int("groups", groups) * self.group_dollars + self.standing_dollars

    def _full(self, groups: int) -> float:
        if self.group_capacity_tokens == math.inf:
            raise ValueError(
                "group_capacity_tokens must be finite for a utilisation, got inf. Say what a full group can serve."
            )
        return groups * self.group_capacity_tokens


def fleet_for(
    demand: Demand,
    gpu_hour_dollars: float,
    *,
    floor_share: float = 1.0,
    people_dollars: float = 0.0,
    spare_groups: int = 0,
    hours_per_month: float = HOURS_PER_MONTH,
) -> Fleet:
    """Return the fleet whose groups are the replicas of a demand, with what each can serve of its mix.

    Parameters
    ----------
    demand : Demand
        A traffic on a kind of replica; only its mix counts here, not its rate.
    gpu_hour_dollars : float
        One GPU for one hour [dollars].
    floor_share : float
        What the engine really serves over what the floor of page A3 would, in (0, 1] [ratio].
    people_dollars : float
        As in :class:`Fleet` [dollars].
    spare_groups : int
        As in :class:`Fleet` [count].
    hours_per_month : float
        Hours that the month has [hours].

    Returns
    -------
    Fleet
        One group is one replica; its capacity is that of a replica which is never idle.

    Raises
    ------
    ValueError
        If a value is out of range.

    Notes
    -----
    ``capacity = requests per second × (prompt + answer) × 3600 × hours × floor share``, cached prompt tokens
    included. Page F2.

    Examples
    --------
    >>> from lantern_lib import H100, LANTERN_70B, Replica
    >>> from lantern_lib.capacity import Traffic, fleet_demand
    >>> demand = fleet_demand(LANTERN_70B, Replica(H100, tp_size=4), Traffic(20, 2000, 400))
    >>> full, half = (fleet_for(demand, 3.0, floor_share=share) for share in (1.0, 0.5))
    >>> [round(fleet.token_dollars_at(u) * 1e6, 2) for fleet, u in ((full, 1), (full, 0.65), (half, 0.65))]
    [0.31, 0.48, 0.96]
    """
    reached = require_fraction("floor_share", floor_share, "0.5 is an engine at half the floor.")
    tokens_per_second = demand.requests_per_second * demand.traffic.context_len * reached
    hours = require_positive("hours_per_month", hours_per_month)
    return Fleet(
        demand.replica.tp_size,
        gpu_hour_dollars,
        people_dollars,
        tokens_per_second * SECONDS_PER_HOUR * hours,
        hours,
        spare_groups,
    )
