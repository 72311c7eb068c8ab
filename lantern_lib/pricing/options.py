"""Which way of buying capacity may be used at all, and which of those is cheapest.

Where data may be processed, by whom, and how it is classified are gates. They are asked first, and no price is low
enough to pass one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lantern_lib.units import require_non_negative, require_one_of

#: Ways to get capacity; of two at the same cost, the one that stands first is chosen.
KINDS = ("per-token", "provisioned", "spillover", "self-hosted")
#: Classes of data, from the least to the most protected.
DATA_CLASSES = ("public", "internal", "confidential", "restricted")


@dataclass(frozen=True)
class Option:
    """A way to get capacity, with what matters to the gates.

    Parameters
    ----------
    name : str
        What people call it [text].
    kind : str
        One of :data:`KINDS`.
    monthly_dollars : float
        What it costs at the volume in question [dollars].
    regions : frozenset of str
        Everywhere that a request may be processed, spillover included.
    highest_class : str
        The most protected class of :data:`DATA_CLASSES` that it is cleared for.
    third_party : bool
        Whether somebody else processes the data.
    pinned_weights : bool
        Whether the weights stay until you change them, so that an old answer can be produced again.
    """

    name: str
    kind: str
    monthly_dollars: float
    regions: frozenset[str]
    highest_class: str = "confidential"
    third_party: bool = True
    pinned_weights: bool = False

    def __post_init__(self) -> None:
        require_one_of("kind", self.kind, KINDS)
        require_one_of("highest_class", self.highest_class, DATA_CLASSES)
        require_non_negative("monthly_dollars", self.monthly_dollars)
        if not self.regions:
            raise ValueError("regions must be at least one region, got none. Where are requests processed?")


@dataclass(frozen=True)
class Requirements:
    """What a workload demands of any option. The defaults demand nothing.

    Parameters
    ----------
    data_class : str
        One of :data:`DATA_CLASSES`.
    allowed_regions : frozenset of str, optional
        The only places where requests may be processed; without it, anywhere.
    third_party_allowed : bool
        Whether somebody else may process the data.
    must_reproduce : bool
        Whether an answer of last year has to be producible again.
    """

    data_class: str = "public"
    allowed_regions: frozenset[str] | None = None
    third_party_allowed: bool = True
    must_reproduce: bool = False

    def __post_init__(self) -> None:
        require_one_of("data_class", self.data_class, DATA_CLASSES)


@dataclass(frozen=True)
class Choice:
    """What was chosen, and why the others were refused. ``option`` is None if no gate lets any through."""

    option: Option | None
    refused: dict[str, tuple[str, ...]]


def refusals(option: Option, needs: Requirements) -> tuple[str, ...]:
    """Return the gates that an option does not pass, each with its reason.

    Parameters
    ----------
    option : Option
        A way to get capacity.
    needs : Requirements
        What the workload demands.

    Returns
    -------
    tuple of str
        One sentence for each gate that refuses, beginning with the gate's name; empty if it is admissible [text].

    Examples
    --------
    >>> pool = Option("global pool", "per-token", 100, frozenset({"eu", "us"}))
    >>> refusals(pool, Requirements(allowed_regions=frozenset({"eu"})))
    ('region: may be processed in us',)
    """
    found = []
    outside = set() if needs.allowed_regions is None else option.regions - needs.allowed_regions
    if outside:
        found.append(f"region: may be processed in {', '.join(sorted(outside))}")
    if DATA_CLASSES.index(needs.data_class) > DATA_CLASSES.index(option.highest_class):
        found.append(f"class: cleared up to {option.highest_class}, the data are {needs.data_class}")
    if option.third_party and not needs.third_party_allowed:
        found.append("processor: somebody else processes the data")
    if needs.must_reproduce and not option.pinned_weights:
        found.append("weights: the provider may retire the model")
    return tuple(found)


def cheapest_option(options: Sequence[Option], needs: Requirements | None = None) -> Choice:
    """Return the cheapest of the options that pass every gate.

    Parameters
    ----------
    options : sequence of Option
        What is on offer.
    needs : Requirements, optional
        What the workload demands; without it, nothing.

    Returns
    -------
    Choice
        The option, and for each refused one the reasons.

    Raises
    ------
    ValueError
        If nothing is on offer.

    Notes
    -----
    Gates first, price second: a refused option has no price. Of equal costs the earlier of :data:`KINDS` wins, so a tie
    goes to paying per token, which binds nobody. If nothing is left, the workload or the offer has to change. Page on
    capacity types.

    Examples
    --------
    >>> eu = frozenset({"eu"})
    >>> offers = [Option("own machines", "self-hosted", 42_520, eu, "restricted", third_party=False),
    ...           Option("pool", "per-token", 18_000, eu | {"us"})]
    >>> cheapest_option(offers).option.name, cheapest_option(offers, Requirements("restricted")).option.name
    ('pool', 'own machines')
    """
    if not options:
        raise ValueError("options must be at least one, got none.")
    wanted = needs if needs is not None else Requirements()
    reasons = {option.name: refusals(option, wanted) for option in options}
    left = [option for option in options if not reasons[option.name]]
    best = min(left, key=lambda o: (o.monthly_dollars, KINDS.index(o.kind)), default=None)
    return Choice(best, {name: why for name, why in reasons.items() if why})
