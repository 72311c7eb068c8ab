"""Two efficiencies and an overhead from measurements of one card, and how far to trust a prediction.

A floor takes the data sheet's peaks. What measurements add is fitted here: for each step
``time = max(arithmetic / a, memory / b) + c``, with what the data leave open.
:func:`lantern_lib.simulator.calibration.calibrate` fits the same three numbers to a whole run; this module fits them to
single numbers, of which far more are published.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lantern_lib.bounded_fit import fit_floor, student_quantile
from lantern_lib.hardware import Replica
from lantern_lib.measurements import CARDS, Measurement, floor
from lantern_lib.spreads import Prediction
from lantern_lib.step import StepCost
from lantern_lib.units import require_int

#: What a fit of one card was wrong by on the next: an RTX 4090's numbers predicted 27 percent too little time a token
#: on an RTX PRO 6000, whose runs were of the same model and traffic.
MOVED_ERROR = 0.27
_PARTS = ("compute_efficiency", "bandwidth_efficiency", "overhead_seconds")


@dataclass(frozen=True)
class Estimate:
    """A fitted number with its interval; ``determined`` is False where no measurement depends on it."""

    value: float
    low: float
    high: float
    determined: bool = True


@dataclass(frozen=True)
class Fit:
    """Two efficiencies and an overhead of one card and one degree.

    ``scatter`` is the relative deviation of a measurement from the fit [ratio], ``covariance`` that of the two
    reciprocal efficiencies and the overhead over the square of the scatter, ``moved_from`` the card that the numbers
    were fitted on if it is another.
    """

    card: str
    tp_size: int
    compute_efficiency: Estimate
    bandwidth_efficiency: Estimate
    overhead_seconds: Estimate
    scatter: float
    num_rows: int
    freedom: int
    covariance: tuple[tuple[float, float, float], ...]
    moved_from: str = ""

    @property
    def replica(self) -> Replica:
        """The cards with the fitted efficiencies."""
        compute, bandwidth = self.compute_efficiency.value, self.bandwidth_efficiency.value
        return Replica(CARDS[self.card], self.tp_size, compute, bandwidth)

    def predict(self, compute_seconds: float, memory_seconds: float, steps: int = 1) -> Prediction:
        """Predict the time of work whose floors are known.

        Parameters
        ----------
        compute_seconds, memory_seconds : float
            Arithmetic and memory of one card group at the data sheet's peaks [seconds].
        steps : int
            Steps that the work takes; each has the overhead [count].

        Returns
        -------
        Prediction
            Time and interval.

        Raises
        ------
        ValueError
            If `steps` is below 1, or the part that bounds the work is not determined by the measurements.
        """
        require_int("steps", steps)
        arithmetic = compute_seconds / self.compute_efficiency.value
        memory = memory_seconds / self.bandwidth_efficiency.value
        bound = self.compute_efficiency if arithmetic > memory else self.bandwidth_efficiency
        if not bound.determined:
            name = _PARTS[0] if arithmetic > memory else _PARTS[1]
            raise ValueError(
                f"{name} must be determined by the measurements, got none that depends on it. Measure"
                f" {'long prompts' if arithmetic > memory else 'decode steps'} too, or use a spread."
            )
        seconds = max(arithmetic, memory) + steps * self.overhead_seconds.value
        row = np.array([compute_seconds if arithmetic > memory else 0.0, memory_seconds, steps]) / seconds
        if arithmetic > memory:
            row[1] = 0.0
        leverage = float(row @ np.array(self.covariance) @ row)
        spread = self.scatter * math.sqrt(1 + leverage)
        why = f"scatter of {self.num_rows} measurements of this card"
        if self.moved_from:
            spread = math.hypot(spread, MOVED_ERROR)
            why = f"fitted on {self.moved_from}, where such a move was wrong by {MOVED_ERROR:.0%} once"
        width = student_quantile(self.freedom) * spread
        # Nothing is faster than the peaks, however wide the scatter.
        least = max(compute_seconds, memory_seconds)
        return Prediction(seconds, max(least, seconds * (1 - width)), seconds * (1 + width), why)

    def predict_step(self, cost: StepCost) -> Prediction:
        """Predict the time of one step from its cost at the peaks.

        Parameters
        ----------
        cost : StepCost
            Of :mod:`lantern_lib.step`, for a replica of these cards with both efficiencies 1.

        Returns
        -------
        Prediction
            Time and interval.

        Raises
        ------
        ValueError
            If the part that bounds the step is not determined by the measurements.
        """
        return self.predict(cost.compute_seconds, cost.memory_seconds)

    @property
    def summary(self) -> str:
        """One line with the three numbers."""

        def shown(part: Estimate, scale: float = 1.0) -> str:
            if not part.determined:
                return "undetermined"
            return f"{part.value * scale:.3g} ({part.low * scale:.3g} to {part.high * scale:.3g})"

        moved = f", moved from {self.moved_from}" if self.moved_from else ""
        return (
            f"{self.tp_size} × {CARDS[self.card].name}{moved}: {shown(self.compute_efficiency)} of peak arithmetic,"
            f" {shown(self.bandwidth_efficiency)} of peak bandwidth, {shown(self.overhead_seconds, 1e3)} ms a step;"
            f" {self.num_rows} measurements scatter by {self.scatter:.1%}"
        )


def _rows(chosen: Sequence[Measurement]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return arithmetic, memory and steps of each measurement, and its time."""
    work, times = [], []
    for one in chosen:
        least = floor(one)
        steps = one.output_len if one.work == "both" else 1
        work.append((least.compute_seconds, least.memory_seconds, float(steps)))
        times.append(least.measured_seconds)
    return np.array(work), np.array(times)


def _require_one_machine(chosen: Sequence[Measurement]) -> None:
    if not chosen:
        raise ValueError("measurements must hold one that is not rejected, got none.")
    for field in ("card", "tp_size", "precision"):
        values = sorted({str(getattr(one, field)) for one in chosen})
        if len(values) > 1:
            raise ValueError(
                f"{field} must be one for all measurements, got {', '.join(values)}. The numbers of a fit do not"
                " travel: fit each alone, or move a fit with moved(...), which says so."
            )
    unknown = [one.id for one in chosen if one.work == "both" and one.batch_size is None]
    if unknown:
        raise ValueError(
            f"batch_size must be known, got none for {', '.join(unknown[:5])}. Without it neither bytes nor steps are."
        )


def calibrate(measurements: Iterable[Measurement]) -> Fit:
    """Fit two efficiencies and an overhead to measurements of one card, one degree and one precision.

    Parameters
    ----------
    measurements : iterable of Measurement
        Decode steps, prompts, whole requests; rejected ones are passed over.

    Returns
    -------
    Fit
        The three numbers with intervals, and the scatter.

    Raises
    ------
    ValueError
        If they are no more than the numbers they determine, or of several cards, degrees or precisions.

    Notes
    -----
    Least squares of relative deviations of ``max(arithmetic / a, memory / b) + steps c`` with a, b ≤ 1 and c ≥ 0. The
    intervals are those of a linear fit with Student's factor, cut at the bounds. A number that no measurement depends
    on is undetermined: decode steps alone tell nothing of arithmetic.

    Examples
    --------
    >>> def made(batch_size, metric, prompt_len, seconds):
    ...     return Measurement("m", "a log", "", "Llama-3-8B", "H100", "bf16", "vLLM", 1, batch_size, prompt_len, 0,
    ...         prompt_len, metric, seconds)
    >>> runs = [made(batch, "tpot", 1000, 0.0075 + 0.00006 * batch) for batch in (1, 4, 16, 64)]
    >>> fit = calibrate([*runs, made(1, "ttft", 4000, 0.14), made(1, "ttft", 8000, 0.29)])
    >>> 0.4 < fit.compute_efficiency.value < 0.6, 0.6 < fit.bandwidth_efficiency.value < 0.9
    (True, True)
    """
    chosen = [one for one in measurements if not one.rejected]
    _require_one_machine(chosen)
    work, times = _rows(chosen)
    point, design = fit_floor(work, times)
    used = np.abs(design).sum(axis=0) > 0
    freedom = len(times) - int(used.sum())
    if freedom < 1:
        raise ValueError(
            f"measurements must be more than the {int(used.sum())} numbers they determine, got {len(times)}. A fit that"
            " meets every point says nothing of its own error."
        )
    scatter = math.sqrt(float(((design @ point - 1.0) ** 2).sum()) / freedom)
    covariance = np.zeros((3, 3))
    covariance[np.ix_(used, used)] = np.linalg.pinv(design[:, used].T @ design[:, used])
    width = student_quantile(freedom) * scatter * np.sqrt(np.diag(covariance))
    return Fit(
        card=chosen[0].card,
        tp_size=chosen[0].tp_size,
        compute_efficiency=_efficiency(point[0], width[0], bool(used[0])),
        bandwidth_efficiency=_efficiency(point[1], width[1], bool(used[1])),
        overhead_seconds=Estimate(float(point[2]), float(max(0.0, point[2] - width[2])), float(point[2] + width[2])),
        scatter=scatter,
        num_rows=len(times),
        freedom=freedom,
        covariance=tuple((float(a), float(b), float(c)) for a, b, c in covariance),
    )


def _efficiency(reciprocal: float, width: float, determined: bool) -> Estimate:
    if not determined:
        return Estimate(1.0, 0.0, 1.0, determined=False)
    return Estimate(float(1 / reciprocal), float(1 / (reciprocal + width)), float(1 / max(1.0, reciprocal - width)))


def moved(fit: Fit, card: str, tp_size: int | None = None, *, knowingly: bool = False) -> Fit:
    """Take the numbers of one card for another, and say so.

    Parameters
    ----------
    fit : Fit
        The fit.
    card : str
        Key of :data:`lantern_lib.measurements.CARDS` [text].
    tp_size : int, optional
        Cards that share the model, the same if not given [count].
    knowingly : bool
        Whether you accept that efficiencies do not travel.

    Returns
    -------
    Fit
        The same numbers with wider predictions, marked as moved.

    Raises
    ------
    ValueError
        If the card or the degree is another and `knowingly` is False, or the card is unknown.

    Examples
    --------
    >>> runs = [Measurement("m", "", "", "Llama-3-8B", "H100", "bf16", "vLLM", 1, batch, 1000, 0, 1000, "tpot", seconds)
    ...     for batch, seconds in ((1, 0.0075), (8, 0.0079), (64, 0.0113))]
    >>> moved(calibrate(runs), "A100-80")
    Traceback (most recent call last):
    ...
    ValueError: card must be H100 with 1 GPUs, got A100-80 with 1. Efficiencies do not travel: measure there, or pass\
 knowingly=True for a wide guess.
    """
    degree = fit.tp_size if tp_size is None else require_int("tp_size", tp_size)
    if card not in CARDS:
        raise ValueError(f"card must be one of {', '.join(CARDS)}, got {card!r}.")
    if (card, degree) == (fit.card, fit.tp_size):
        return fit
    if not knowingly:
        raise ValueError(
            f"card must be {fit.card} with {fit.tp_size} GPUs, got {card} with {degree}. Efficiencies do not travel:"
            " measure there, or pass knowingly=True for a wide guess."
        )
    return replace(fit, card=card, tp_size=degree, moved_from=f"{fit.tp_size} × {CARDS[fit.card].name}")
