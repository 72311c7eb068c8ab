"""Workloads that are drawn: when requests arrive, and how long they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from lantern_lib.units import require_int, require_positive
from lantern_lib.workload.requests import Workload


class Lengths(Protocol):
    """A distribution of lengths [tokens]."""

    def draw(self, count: int, generator: np.random.Generator) -> NDArray[np.int64]:
        """Draw lengths of 1 or more."""
        ...


@dataclass(frozen=True)
class Exponential:
    """Lengths without memory: however long an answer is by now, as much is still to come on average.

    Parameters
    ----------
    mean : float
        Mean length, at least 1; drawn as whole numbers (the geometric distribution), so that it is exact [tokens].
    """

    mean: float

    def __post_init__(self) -> None:
        if require_positive("mean", self.mean) < 1:
            raise ValueError(f"mean must be 1 or more, got {self.mean!r}. No request is shorter than a token.")

    def draw(self, count: int, generator: np.random.Generator) -> NDArray[np.int64]:
        """Draw lengths of 1 or more."""
        return generator.geometric(1 / self.mean, count)


@dataclass(frozen=True)
class Lognormal:
    """Lengths whose logarithm is normal: most are short and a few are very long.

    Parameters
    ----------
    median : float
        Half are shorter [tokens].
    sigma : float
        Standard deviation of the logarithm; the mean is ``median exp(sigma² / 2)`` [ratio].
    maximum : int, optional
        Longer ones are cut to this [tokens].
    """

    median: float
    sigma: float
    maximum: int | None = None

    def __post_init__(self) -> None:
        require_positive("median", self.median)
        require_positive("sigma", self.sigma)
        if self.maximum is not None:
            require_int("maximum", self.maximum)

    def draw(self, count: int, generator: np.random.Generator) -> NDArray[np.int64]:
        """Draw lengths of 1 or more."""
        drawn = np.rint(generator.lognormal(np.log(self.median), self.sigma, count)).astype(np.int64)
        return np.clip(drawn, 1, self.maximum)


@dataclass(frozen=True)
class Mixture:
    """Several kinds of requests, each with a share.

    Parameters
    ----------
    parts : tuple of (float, int or Lengths)
        Share of a kind, and its lengths; the shares are taken relative to their sum [ratio, tokens].
    """

    parts: tuple[tuple[float, int | Lengths], ...]

    def __post_init__(self) -> None:
        if not self.parts:
            raise ValueError("parts must hold at least one kind, got none.")
        for share, _ in self.parts:
            require_positive("share", share)

    def draw(self, count: int, generator: np.random.Generator) -> NDArray[np.int64]:
        """Draw lengths of 1 or more."""
        shares = np.array([share for share, _ in self.parts])
        kinds = generator.choice(len(shares), size=count, p=shares / shares.sum())
        drawn = np.empty(count, np.int64)
        for number, (_, lengths) in enumerate(self.parts):
            chosen = kinds == number
            drawn[chosen] = _draw(lengths, int(chosen.sum()), generator)
        return drawn


def _draw(lengths: int | Lengths, count: int, generator: np.random.Generator | None) -> NDArray[np.int64]:
    if isinstance(lengths, (int, np.integer)):
        return np.full(count, require_int("length", lengths), np.int64)
    if generator is None:
        raise ValueError("generator must be given to draw lengths, got None. Pass numpy.random.default_rng(seed).")
    return lengths.draw(count, generator)


def _workload(
    arrivals: NDArray[np.float64],
    prompt_len: int | Lengths,
    output_len: int | Lengths,
    generator: np.random.Generator | None,
) -> Workload:
    count = len(arrivals)
    return Workload(arrivals, _draw(prompt_len, count, generator), _draw(output_len, count, generator))


def poisson(
    num_requests: int,
    rate: float,
    prompt_len: int | Lengths,
    output_len: int | Lengths,
    generator: np.random.Generator,
) -> Workload:
    """Draw requests of many users who know nothing of one another.

    Parameters
    ----------
    num_requests : int
        How many [requests].
    rate : float
        Mean arrivals per second [requests/s].
    prompt_len, output_len : int or Lengths
        One length for all, or a distribution [tokens].
    generator : numpy.random.Generator
        Where the chance comes from.

    Returns
    -------
    Workload
        With exponential gaps between arrivals.

    Raises
    ------
    ValueError
        If `rate` is not above 0 or a number below 1.

    Examples
    --------
    >>> work = poisson(10_000, 4.0, 2000, Exponential(400), np.random.default_rng(1))
    >>> round(work.arrival_seconds[-1]), round(work.output_len.mean())
    (2503, 398)
    """
    return gamma(num_requests, rate, 1.0, prompt_len, output_len, generator)


def gamma(
    num_requests: int,
    rate: float,
    cv: float,
    prompt_len: int | Lengths,
    output_len: int | Lengths,
    generator: np.random.Generator,
) -> Workload:
    """Draw requests whose gaps vary as much as you say.

    Parameters
    ----------
    num_requests : int
        How many [requests].
    rate : float
        Mean arrivals per second [requests/s].
    cv : float
        Standard deviation of the gaps over their mean: 1 is Poisson, more comes in bursts, less is more even [ratio].
    prompt_len, output_len : int or Lengths
        One length for all, or a distribution [tokens].
    generator : numpy.random.Generator
        Where the chance comes from.

    Returns
    -------
    Workload
        With gaps of a gamma distribution.

    Raises
    ------
    ValueError
        If `rate` or `cv` is not above 0 or a number below 1.

    Notes
    -----
    Shape ``1 / cv²``, scale ``cv² / rate``. Gaps are independent: a rate that drifts over minutes is not in it.

    Examples
    --------
    >>> gaps = np.diff(gamma(20_000, 4.0, 3.0, 2000, 400, np.random.default_rng(1)).arrival_seconds)
    >>> print(f"{gaps.std() / gaps.mean():.1f}")
    2.9
    """
    require_int("num_requests", num_requests)
    require_positive("rate", rate, "Give requests per second.")
    shape = 1 / require_positive("cv", cv, "For gaps without any variation use evenly.") ** 2
    gaps = generator.gamma(shape, 1 / (shape * rate), num_requests)
    return _workload(np.cumsum(gaps), prompt_len, output_len, generator)


def evenly(
    num_requests: int,
    rate: float,
    prompt_len: int | Lengths,
    output_len: int | Lengths,
    generator: np.random.Generator | None = None,
) -> Workload:
    """Make requests that arrive like a clock.

    Parameters
    ----------
    num_requests : int
        How many [requests].
    rate : float
        Arrivals per second [requests/s].
    prompt_len, output_len : int or Lengths
        One length for all, or a distribution [tokens].
    generator : numpy.random.Generator, optional
        Needed for a distribution.

    Returns
    -------
    Workload
        The first at time 0.

    Raises
    ------
    ValueError
        If `rate` is not above 0, a number below 1, or the generator missing.

    Examples
    --------
    >>> evenly(3, 2.0, 10, 5).arrival_seconds.tolist()
    [0.0, 0.5, 1.0]
    """
    require_int("num_requests", num_requests)
    require_positive("rate", rate, "Give requests per second.")
    return _workload(np.arange(num_requests) / rate, prompt_len, output_len, generator)


def at_once(
    num_requests: int,
    prompt_len: int | Lengths,
    output_len: int | Lengths,
    generator: np.random.Generator | None = None,
) -> Workload:
    """Make requests that all arrive at time 0, as an offline batch does.

    Parameters
    ----------
    num_requests : int
        How many [requests].
    prompt_len, output_len : int or Lengths
        One length for all, or a distribution [tokens].
    generator : numpy.random.Generator, optional
        Needed for a distribution.

    Returns
    -------
    Workload
        The time to first token in such a test is mostly time in the queue.

    Raises
    ------
    ValueError
        If a number is below 1 or the generator missing.

    Examples
    --------
    >>> len(at_once(5, 10, 5))
    5
    """
    return _workload(np.zeros(require_int("num_requests", num_requests)), prompt_len, output_len, generator)
