"""Who rides in which step: static and continuous batching, counted in steps of equal time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lantern_lib.units import require_int


@dataclass(frozen=True)
class SlotUse:
    """One request in one slot. Steps are numbered from 0.

    It computes a token in each step from ``start_step`` up to, but not including, ``end_step``. Until ``release_step``
    nobody else gets the slot, and under static batching the answer is handed over only then.
    """

    request: int
    slot: int
    arrival_step: int
    start_step: int
    end_step: int
    release_step: int


@dataclass(frozen=True)
class Schedule:
    """What a policy made of a list of requests, in the order in which they were given."""

    policy: str
    num_slots: int
    uses: tuple[SlotUse, ...]

    @property
    def total_steps(self) -> int:
        """Steps until the last request is done, idle ones before it included [steps]."""
        return max(use.release_step for use in self.uses)

    @property
    def busy_slot_steps(self) -> int:
        """Slots that computed a token, summed over all steps [slot-steps]."""
        return sum(use.end_step - use.start_step for use in self.uses)

    @property
    def busy_share(self) -> float:
        """Share of all slot-steps that computed a token [ratio]."""
        return self.busy_slot_steps / (self.num_slots * self.total_steps)

    @property
    def mean_latency_from_admission(self) -> float:
        """Mean steps from getting a slot to the answer; the queue is left out [steps]."""
        return sum(use.release_step - use.start_step for use in self.uses) / len(self.uses)

    @property
    def mean_latency_from_arrival(self) -> float:
        """Mean steps from arriving to the answer, which is what a user waits [steps]."""
        return sum(use.release_step - use.arrival_step for use in self.uses) / len(self.uses)

    @property
    def summary(self) -> str:
        """One line with the counts."""
        return (
            f"{self.policy} batching of {len(self.uses):,} requests in {self.num_slots:,} slots:"
            f" {self.total_steps:,} steps, {self.busy_share:.1%} of the slot-steps busy"
        )


def _checked(lengths: Sequence[int], num_slots: int, arrivals: Sequence[int] | None) -> list[int]:
    require_int("num_slots", num_slots, hint="A batch needs a place.")
    if not lengths:
        raise ValueError("lengths must hold at least one request, got none. Give an output length for each request.")
    for index, length in enumerate(lengths):
        require_int(f"lengths[{index}]", length, hint="An answer has at least one token.")
    if arrivals is None:
        return [0] * len(lengths)
    if len(arrivals) != len(lengths):
        raise ValueError(f"arrivals must have one step for each of {len(lengths):,} requests, got {len(arrivals):,}.")
    for index, arrival in enumerate(arrivals):
        require_int(f"arrivals[{index}]", arrival, minimum=0)
        if index and arrival < arrivals[index - 1]:
            raise ValueError(
                f"arrivals[{index}] must be {arrivals[index - 1]} or more, got {arrival}."
                " Requests are served in order; sort them by arrival."
            )
    return list(arrivals)


def static_batching(lengths: Sequence[int], num_slots: int, arrivals: Sequence[int] | None = None) -> Schedule:
    """Run requests in batches, each until its longest member is done.

    Parameters
    ----------
    lengths : sequence of int
        Output length of each request, in order [tokens].
    num_slots : int
        Requests that one batch holds [slots].
    arrivals : sequence of int, optional
        Step at which each arrives, never falling; without it all are there at the start [steps].

    Returns
    -------
    Schedule
        A batch is whoever has arrived when the last one ends, up to `num_slots`.

    Raises
    ------
    ValueError
        If a length or `num_slots` is below 1, or the arrivals do not match the lengths or fall.

    Notes
    -----
    A batch takes ``max(lengths)`` steps, and all its answers are handed over at its end. Prefill is not
    counted. Page B1.

    Examples
    --------
    >>> static_batching([4, 1, 2, 2], num_slots=2).total_steps
    6
    """
    arrived = _checked(lengths, num_slots, arrivals)
    uses: list[SlotUse] = []
    now = 0
    while len(uses) < len(lengths):
        first = len(uses)
        now = max(now, arrived[first])
        batch = [i for i in range(first, min(first + num_slots, len(lengths))) if arrived[i] <= now]
        end = now + max(lengths[i] for i in batch)
        uses += [SlotUse(i, i - first, arrived[i], now, now + lengths[i], end) for i in batch]
        now = end
    return Schedule("static", num_slots, tuple(uses))


def continuous_batching(lengths: Sequence[int], num_slots: int, arrivals: Sequence[int] | None = None) -> Schedule:
    """Run requests so that a slot which becomes free is filled in the same step.

    Parameters
    ----------
    lengths : sequence of int
        Output length of each request, in order [tokens].
    num_slots : int
        Requests that one step holds [slots].
    arrivals : sequence of int, optional
        Step at which each arrives, never falling; without it all are there at the start [steps].

    Returns
    -------
    Schedule
        Each request gets the slot that is free first, the lowest number where several are.

    Raises
    ------
    ValueError
        If a length or `num_slots` is below 1, or the arrivals do not match the lengths or fall.

    Notes
    -----
    Each step retires who is done, then admits, then computes: a slot that ends with step 9 works for somebody else in
    step 10. Prefill is not counted. Page B1.

    Examples
    --------
    >>> run = continuous_batching([4, 1, 2, 2], num_slots=2)
    >>> run.total_steps, [(use.slot, use.start_step, use.end_step) for use in run.uses]
    (5, [(0, 0, 4), (1, 0, 1), (1, 1, 3), (1, 3, 5)])
    """
    arrived = _checked(lengths, num_slots, arrivals)
    free = [(0, slot) for slot in range(num_slots)]  # when each slot is free, and its number
    uses = []
    for request, length in enumerate(lengths):
        # Of the slots that are free on arrival the lowest number; otherwise the one that is free first.
        ready = [entry for entry in free if entry[0] <= arrived[request]]
        when, slot = min(ready, key=lambda entry: entry[1]) if ready else min(free)
        start = max(when, arrived[request])
        free.remove((when, slot))
        free.append((start + length, slot))
        uses.append(SlotUse(request, slot, arrived[request], start, start + length, start + length))
    return Schedule("continuous", num_slots, tuple(uses))


def least_steps(lengths: Sequence[int], num_slots: int) -> int:
    """Return the steps below which no policy can go.

    Parameters
    ----------
    lengths : sequence of int
        Output length of each request [tokens].
    num_slots : int
        Requests that one step holds [slots].

    Returns
    -------
    int
        The work over the slots, rounded up, or the longest request if that is more [steps].

    Raises
    ------
    ValueError
        If a length or `num_slots` is below 1.

    Examples
    --------
    >>> least_steps([4, 1, 2, 2], num_slots=2)
    5
    """
    _checked(lengths, num_slots, None)
    return max(-(-sum(lengths) // num_slots), max(lengths))
