"""How many answers it takes to see a loss of quality, and how many people a ramp exposes before it is seen."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from lantern_lib.units import require_fraction, require_int, require_non_negative, require_positive


def _require_below(name: str, value: float, bound_name: str, bound: float, hint: str) -> None:
    if value >= bound:
        raise ValueError(f"{name} must be below {bound_name} = {bound:g}, got {value:g}. {hint}")


def _require_open(name: str, value: float) -> float:
    require_fraction(name, value)
    _require_below(name, value, "certainty", 1.0, "Nothing counted is certain.")
    return value


def answers_to_see_a_change(changed_share: float, confidence: float = 0.95) -> int:
    """Return how many replayed prompts show at least one changed answer.

    Parameters
    ----------
    changed_share : float
        Share of all prompts whose answer the change alters [ratio].
    confidence : float
        Wanted chance to meet one, below 1 [ratio].

    Returns
    -------
    int
        Prompts [count].

    Raises
    ------
    ValueError
        If a share is not in (0, 1] or `confidence` is 1.

    Notes
    -----
    ``1 − (1 − changed_share)^n ≥ confidence``. It supposes that an unchanged system repeats its answers
    to the letter, so that a single difference is proof. Derived on page F3.

    Examples
    --------
    >>> answers_to_see_a_change(0.01)
    299
    """
    require_fraction("changed_share", changed_share)
    _require_open("confidence", confidence)
    if changed_share == 1:
        return 1
    return max(1, math.ceil(math.log1p(-confidence) / math.log1p(-changed_share)))


def _chance_of_at_most(failures: int, num_prompts: int, share: float) -> float:
    """Return the binomial chance of at most `failures` in `num_prompts`."""
    if failures >= num_prompts:
        return 1.0
    i = np.arange(1, failures + 1)
    odds = math.log(share) - math.log1p(-share)
    logs = np.concatenate(([0.0], np.cumsum(np.log((num_prompts - i + 1) / i) + odds)))
    return float(np.exp(logs + num_prompts * math.log1p(-share)).sum())


@dataclass(frozen=True)
class ReplayPlan:
    """A number of prompts and a rule: more than ``max_failures`` failing answers, and the change goes back."""

    num_prompts: int
    max_failures: int


def _smallest_set(max_failures: int, share: float, chance: float) -> int:
    """Return the smallest set in which more than `max_failures` fail with at least this chance."""
    low, high = max_failures + 1, max(2, 2 * max_failures)
    while 1 - _chance_of_at_most(max_failures, high, share) < chance:
        low, high = high, 2 * high
    while low < high:
        middle = (low + high) // 2
        enough = 1 - _chance_of_at_most(max_failures, middle, share) >= chance
        low, high = (low, middle) if enough else (middle + 1, high)
    return low


def replay_plan(
    failing_before: float, failing_after: float, confidence: float = 0.95, power: float = 0.95
) -> ReplayPlan:
    """Return the smallest fixed set of prompts that tells a worse system from the one that is known.

    Parameters
    ----------
    failing_before : float
        Share of prompts on which the old system fails, known from many runs [ratio].
    failing_after : float
        The larger share that must not slip through [ratio].
    confidence : float
        Chance that an unchanged system passes, at least [ratio].
    power : float
        Chance that a system as bad as `failing_after` is sent back, at least [ratio].

    Returns
    -------
    ReplayPlan
        Prompts, and how many may fail.

    Raises
    ------
    ValueError
        If a share is not in (0, 1) or the second is not the larger one.

    Notes
    -----
    Exact: failures are binomial. For each limit ``c`` a smallest set has the power, and a largest one still
    the confidence; the first ``c`` for which the former is no larger than the latter gives the smallest
    plan. Prompts count as independent of each other. Derived on page F3.

    Examples
    --------
    >>> replay_plan(0.1, 0.2)
    ReplayPlan(num_prompts=135, max_failures=19)
    """
    for name, value in (("failing_after", failing_after), ("confidence", confidence), ("power", power)):
        _require_open(name, value)
    require_fraction("failing_before", failing_before)
    _require_below("failing_before", failing_before, "failing_after", failing_after, "Give the better system first.")

    def works(limit: int) -> bool:
        size = _smallest_set(limit, failing_after, power)
        return _chance_of_at_most(limit, size, failing_before) >= confidence

    low, high = 0, 1
    while not works(high):
        low, high = high, 2 * high
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if works(middle) else (middle + 1, high)
    # Rounding to whole prompts can let a smaller limit work just below one that does not.
    while low and works(low - 1):
        low -= 1
    return ReplayPlan(_smallest_set(low, failing_after, power), low)


def _sides(confidence: float, power: float) -> tuple[float, float]:
    for name, value in (("confidence", confidence), ("power", power)):
        _require_open(name, value)
    return NormalDist().inv_cdf(confidence), NormalDist().inv_cdf(power)


def paired_answers(worse_share: float, better_share: float, confidence: float = 0.95, power: float = 0.95) -> int:
    """Return how many prompts to answer with both versions, each compared with its twin.

    Parameters
    ----------
    worse_share : float
        Share of prompts that only the old version gets right [ratio].
    better_share : float
        Share that only the new version gets right; the loss is the difference [ratio].
    confidence, power : float
        As in :func:`replay_plan`.

    Returns
    -------
    int
        Prompts; each is answered twice [count].

    Raises
    ------
    ValueError
        If a share is not one, or the new version is not the worse one.

    Notes
    -----
    Prompts on which both agree say nothing, so their variance is gone. Normal approximation of the sign test on
    the others, with ``d`` their share and ``δ`` the loss: ``(z_confidence √d + z_power √(d − δ²))² / δ²``. Used on
    page F3.

    Examples
    --------
    >>> paired_answers(0.015, 0.005)
    2160
    """
    require_fraction("worse_share", worse_share)
    require_fraction("better_share", better_share, zero=True)
    _require_below("better_share", better_share, "worse_share", worse_share, "There is no loss to see.")
    apart, loss = worse_share + better_share, worse_share - better_share
    require_fraction("worse_share + better_share", apart)
    alarm, catch = _sides(confidence, power)
    return math.ceil(((alarm * math.sqrt(apart) + catch * math.sqrt(apart - loss**2)) / loss) ** 2)


def sampled_answers(failing_before: float, failing_after: float, confidence: float = 0.95, power: float = 0.95) -> int:
    """Return how many answers of each version to score when the two serve different requests.

    Parameters
    ----------
    failing_before : float
        Share of failing answers of the old version [ratio].
    failing_after : float
        The larger share of the new version that must not slip through [ratio].
    confidence, power : float
        As in :func:`replay_plan`.

    Returns
    -------
    int
        Scored answers of each version [count].

    Raises
    ------
    ValueError
        If a share is not in (0, 1) or the second is not the larger one.

    Notes
    -----
    Both shares are measured, so both scatter. Normal approximation, ``δ`` the difference:
    ``(z_confidence + z_power)² (p₀(1 − p₀) + p₁(1 − p₁)) / δ²``. Used on page F3.

    Examples
    --------
    >>> sampled_answers(0.10, 0.11)
    20335
    """
    require_fraction("failing_before", failing_before)
    _require_open("failing_after", failing_after)
    _require_below("failing_before", failing_before, "failing_after", failing_after, "Give the better system first.")
    scatter = failing_before * (1 - failing_before) + failing_after * (1 - failing_after)
    return math.ceil(sum(_sides(confidence, power)) ** 2 * scatter / (failing_after - failing_before) ** 2)


@dataclass(frozen=True)
class Stage:
    """One step of a ramp: the share of traffic on the new version, and for how long [ratio, seconds]."""

    share: float
    seconds: float

    def __post_init__(self) -> None:
        require_fraction("share", self.share)
        require_positive("seconds", self.seconds)


@dataclass(frozen=True)
class Exposure:
    """What a ramp has cost when a fault is gone again.

    ``seconds`` from the start to the alarm, ``share`` of traffic on the new version at that moment, ``requests``
    that the new version has answered by the time it is withdrawn.
    """

    seconds: float
    share: float
    requests: float


def ramp_exposure(
    stages: Sequence[Stage],
    *,
    arrival_rate: float,
    num_scored: int,
    scored_share: float,
    react_seconds: float = 0.0,
) -> Exposure:
    """Return when a ramp notices a fault, and how many requests it has exposed until the rollback.

    Parameters
    ----------
    stages : sequence of Stage
        The ramp; its last stage goes on for ever.
    arrival_rate : float
        Requests of the whole service in a second [1/s].
    num_scored : int
        Scored answers of the new version that the verdict takes [count].
    scored_share : float
        Share of its answers that are scored [ratio].
    react_seconds : float
        From the alarm until no request reaches the new version; the ramp stands still meanwhile [seconds].

    Returns
    -------
    Exposure
        Time, share and requests.

    Raises
    ------
    ValueError
        If there is no stage or a number is out of its range.

    Notes
    -----
    The verdict takes ``num_scored / scored_share`` requests, however slow the ramp is. The ramp decides
    how long that takes, and what is served in the time to react. Used on page F3.

    Examples
    --------
    >>> ramp_exposure([Stage(0.01, 3600), Stage(1, 1)], arrival_rate=20, num_scored=36, scored_share=0.1)
    Exposure(seconds=1800.0, share=0.01, requests=360.0)
    """
    if not stages:
        raise ValueError("stages must be at least one Stage, got none. A jump is Stage(1, 1).")
    require_positive("arrival_rate", arrival_rate)
    require_int("num_scored", num_scored)
    require_fraction("scored_share", scored_share)
    require_non_negative("react_seconds", react_seconds)
    missing, now = num_scored / scored_share, 0.0
    for stage in stages[:-1]:
        served = stage.share * arrival_rate * stage.seconds
        if served >= missing:
            break
        missing, now = missing - served, now + stage.seconds
    else:
        stage = stages[-1]
    rate = stage.share * arrival_rate
    return Exposure(now + missing / rate, stage.share, num_scored / scored_share + rate * react_seconds)
