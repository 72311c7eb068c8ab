"""One replica under load, as the workbench sets it: how long people wait, and at which rate a promise breaks.

``python -m lantern_lib.studies.bench OUT`` runs the whole grid and writes it for the page (about a minute).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from lantern_lib.book_data import json_lines, write_data
from lantern_lib.hardware import H100, Replica
from lantern_lib.metrics import Slo, Summary, summary
from lantern_lib.model_config import LANTERN_70B
from lantern_lib.simulator import EngineConfig, engine_for, simulate, step_model
from lantern_lib.units import require_int, require_positive
from lantern_lib.workload import Exponential, Workload, poisson

PROMPT_LEN, OUTPUT_LEN, BLOCK_SIZE = 2000, 400, 16
MINUTES, WARM_UP_SECONDS, SEED = 10, 60.0, 7
#: Speculation as page B5 assumes it: chance that a draft is kept, and time in which one is written.
ACCEPTANCE, DRAFT_SECONDS = 0.8, 0.0007
PROMISE = Slo(ttft_seconds=2.0, tpot_seconds=0.05)
RATES = (1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 10)
#: A chunk of 0 stands for prompts that are read whole.
CHUNKS, CAPS, HITS, DRAFTS = (0, 2048, 512), (32, 64, 128), (0, 50, 80), (0, 3)


@dataclass(frozen=True)
class Setting:
    """What the workbench lets one change.

    Parameters
    ----------
    chunk : int
        Tokens of a step, decodes included; 0 reads prompts whole, in steps of their own [tokens].
    max_batch : int
        Most sequences that run together [sequences].
    hit_percent : int
        Share of each prompt that all prompts have in common, in whole percent, below 100 [percent].
    draft_len : int
        Tokens drafted in one round; 0 without speculation [tokens].

    Examples
    --------
    >>> Setting(chunk=512).engine().token_budget
    512
    """

    chunk: int = 2048
    max_batch: int = 64
    hit_percent: int = 0
    draft_len: int = 0

    def __post_init__(self) -> None:
        require_int("chunk", self.chunk, minimum=0)
        require_int("max_batch", self.max_batch)
        require_int("draft_len", self.draft_len, minimum=0)
        if not 0 <= self.hit_percent < 100:
            raise ValueError(f"hit_percent must be 0 to 99, got {self.hit_percent!r}. A prompt is never all cached.")

    def engine(self) -> EngineConfig:
        """Lantern's model on four H100 with these settings."""
        replica = Replica(H100, tp_size=4)
        settings: dict[str, Any] = {"max_batch": self.max_batch, "prefix_cache": self.hit_percent > 0}
        if self.chunk:
            settings |= {"prefill": "chunked", "token_budget": self.chunk}
        config = engine_for(LANTERN_70B, replica, block_size=BLOCK_SIZE, **settings)
        if not self.draft_len:
            return config
        cost = step_model(
            LANTERN_70B,
            replica,
            acceptance=ACCEPTANCE,
            draft_len=self.draft_len,
            draft_token_seconds=DRAFT_SECONDS,
        )
        return replace(config, cost=cost)

    def work(self, rate: float, minutes: float = MINUTES, seed: int = SEED) -> Workload:
        """Draw the requests of some minutes; the same seed gives the same ones, only denser at a higher rate."""
        count = round(rate * minutes * 60)
        generator = np.random.default_rng(seed)
        drawn = poisson(count, require_positive("rate", rate), PROMPT_LEN, Exponential(OUTPUT_LEN), generator)
        shared = PROMPT_LEN * self.hit_percent // 100 // BLOCK_SIZE
        if not shared:
            return drawn
        names = np.tile(np.arange(shared), count)
        starts = np.arange(count + 1) * shared
        return replace(drawn, block_size=BLOCK_SIZE, block_ids=names, block_starts=starts)


def measure(setting: Setting, rate: float, *, minutes: float = MINUTES, seed: int = SEED) -> Summary:
    """Run a setting at a rate.

    Parameters
    ----------
    setting : Setting
        The engine.
    rate : float
        Requests per second, open loop [requests/s].
    minutes : float
        For how long requests arrive [minutes].
    seed : int
        Where the chance comes from.

    Returns
    -------
    Summary
        Times of all requests that arrived after the first minute, with the goodput of :data:`PROMISE`.

    Raises
    ------
    ValueError
        If a number is out of range.

    Notes
    -----
    Above what the machine can do the wait grows as long as requests come: a 95th percentile there says how long
    the run was, and no more. Used on the workbench's page.

    Examples
    --------
    >>> light, heavy = (measure(Setting(), rate, minutes=3) for rate in (1, 4))
    >>> light.ttft.p95 < heavy.ttft.p95, light.tpot.p95 < heavy.tpot.p95
    (True, True)
    """
    result = simulate(setting.work(rate, minutes, seed), setting.engine())
    return summary(result, PROMISE, warm_up_seconds=min(WARM_UP_SECONDS, minutes * 15))


def kept_up_to(rates: Sequence[float], ttft: Sequence[float], tpot: Sequence[float], promise: Slo = PROMISE) -> float:
    """Return the highest rate up to which a promise is kept.

    Parameters
    ----------
    rates : sequence of float
        Rising [requests/s].
    ttft, tpot : sequence of float
        A percentile of each at every rate [seconds].
    promise : Slo
        Limits of both [seconds].

    Returns
    -------
    float
        The last of the rates before the first that breaks a limit, 0 if the first one does [requests/s].

    Raises
    ------
    ValueError
        If the sequences differ in length or the promise lacks a limit.

    Examples
    --------
    >>> kept_up_to((1, 2, 3), (0.5, 1.0, 4.0), (0.02, 0.03, 0.04))
    2
    """
    if promise.ttft_seconds is None or promise.tpot_seconds is None:
        raise ValueError(f"promise must have both limits, got {promise!r}.")
    kept = 0.0
    for rate, first, pace in zip(rates, ttft, tpot, strict=True):
        if first > promise.ttft_seconds or pace > promise.tpot_seconds:
            break
        kept = rate
    return kept


def grid() -> list[Setting]:
    """Return all settings of the page's plot.

    Returns
    -------
    list of Setting
        Every chunk with every batch, hit and draft.

    Examples
    --------
    >>> len(grid())
    54
    """
    return [Setting(*levels) for levels in product(CHUNKS, CAPS, HITS, DRAFTS)]


def row(setting: Setting) -> dict[str, Any]:
    """Return one setting with both percentiles at every rate.

    Parameters
    ----------
    setting : Setting
        The engine.

    Returns
    -------
    dict
        The setting's fields, ``ttft`` [milliseconds] and ``tpot`` [tenths of a millisecond], whole numbers.

    Examples
    --------
    >>> len(row(Setting(chunk=0, max_batch=32))["ttft"]) == len(RATES)
    True
    """
    runs = [measure(setting, rate) for rate in RATES]
    return asdict(setting) | {
        "ttft": [round(run.ttft.p95 * 1e3) for run in runs],
        "tpot": [round(run.tpot.p95 * 1e4) for run in runs],
    }


def row_of(rows: Mapping[str, Any], setting: Setting) -> dict[str, Any]:
    """Find a setting in the committed grid.

    Parameters
    ----------
    rows : mapping
        ``book/data/workbench.json``.
    setting : Setting
        One of :func:`grid`.

    Returns
    -------
    dict
        Its row, see :func:`row`.

    Raises
    ------
    ValueError
        If it is not there.

    Examples
    --------
    >>> row_of({"settings": [asdict(Setting()) | {"ttft": [300]}]}, Setting())["ttft"]
    [300]
    """
    for each in rows["settings"]:
        if asdict(setting).items() <= each.items():
            found: dict[str, Any] = each
            return found
    raise ValueError(f"setting must be one of the grid, got {setting!r}. Its levels are CHUNKS, CAPS, HITS and DRAFTS.")


def _text() -> str:
    return f'{{"rates": {json.dumps(RATES)},\n"settings": [\n{json_lines(map(row, grid()))}\n]}}\n'


#: Write the grid to the file that is named.
main = partial(write_data, "lantern_lib.studies.bench OUT", make=_text)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
