"""Week 4: what stands in for a student's functions, which store real matrices and check real drafts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from lantern_lib import speculative
from lantern_lib.tiny import speculation, storage
from lantern_lib.tiny.arrays import Floats, Ints
from lantern_lib.tiny.layers import softmax

#: Library modules that a student may use besides those of every week.
ALLOWED: frozenset[str] = frozenset(
    {"step", "tiny", "tiny.arrays", "tiny.decoder", "tiny.layers", "tiny.rounds", "tiny.shapes", "tiny.text"}
)


def _relative_error(weights: Floats, restored: Floats) -> float:
    size = float(np.linalg.norm(weights))
    return float(np.linalg.norm(weights - restored)) / size if size else 0.0


def _bits_per_character(scores: Floats, tokens: Ints) -> float:
    chances = softmax(scores[:-1])[np.arange(len(tokens) - 1), tokens[1:]]
    return float(-np.log2(chances).mean())


STAND_INS: dict[str, Callable[..., Any]] = {
    "quantize": storage.quantize,
    "restore": storage.restore,
    "quantize_groups": storage.quantize_groups,
    "restore_groups": storage.restore_groups,
    "stored_bytes": storage.stored_bytes,
    "relative_error": _relative_error,
    "bits_per_character": _bits_per_character,
    "quantize_model": lambda weights, bits, group_size: storage.quantize_model(weights, bits, group_size),
    "keep_chance": speculation.keep_chance,
    "residual": speculation.residual,
    "acceptance": speculation.acceptance,
    "check_drafts": speculation.check_drafts,
    "expected_tokens": speculative.expected_tokens,
    "best_draft_len": speculative.best_draft_len,
    "check_seconds": lambda model, replica, batch_size, context_len, draft_len: (
        speculative.verify_step(model, replica, batch_size, context_len, draft_len).total_seconds
    ),
    "break_even_batch": speculative.break_even_batch,
}


def sharp_matrix(rng: np.random.Generator, rows: int, columns: int) -> Mapping[str, Floats]:
    """Return matrices that are hard to store in few bits, by what makes them so.

    Parameters
    ----------
    rng : numpy.random.Generator
        Where the numbers come from.
    rows, columns : int
        Their shape [count].

    Returns
    -------
    dict of str to array
        Plain normal numbers; rows of very different size; one outlier; numbers all above zero.

    Examples
    --------
    >>> sorted(sharp_matrix(np.random.default_rng(1), 4, 8))
    ['all above zero', 'normal numbers', 'one outlier', 'rows of different size']
    """
    normal = rng.normal(size=(rows, columns))
    outlier = normal.copy()
    outlier[rows // 2, columns // 3] = -30.0
    return {
        "normal numbers": normal,
        "rows of different size": normal * np.logspace(-3, 1, rows)[:, None],
        "one outlier": outlier,
        "all above zero": np.abs(normal) + 2.0,
    }
