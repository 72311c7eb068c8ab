"""Accepting and rejecting drafts of real distributions, so that the output is exactly the large model's."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lantern_lib.tiny.arrays import Floats


def keep_chance(target: Floats, draft: Floats) -> Floats:
    """Return with which chance a drafted token is kept, for each token that may have been drafted.

    Parameters
    ----------
    target, draft : array
        The two models' probabilities of the next token, shape (vocabulary,).

    Returns
    -------
    array
        ``min(1, target / draft)``, and 1 where the draft never goes, shape (vocabulary,).

    Examples
    --------
    >>> keep_chance(np.array([0.2, 0.8, 0.0]), np.array([0.4, 0.6, 0.0])).tolist()
    [0.5, 1.0, 1.0]
    """
    possible = draft > 0
    ratio = np.ones_like(target)
    ratio[possible] = target[possible] / draft[possible]
    return np.minimum(1.0, ratio)


def residual(target: Floats, draft: Floats) -> Floats:
    """Return the distribution that a token is drawn from in place of a rejected one.

    Parameters
    ----------
    target, draft : array
        The two models' probabilities of the next token, shape (vocabulary,).

    Returns
    -------
    array
        ``max(0, target - draft)`` over its sum; `target` where the two agree, since nothing is rejected then.

    Examples
    --------
    >>> residual(np.array([0.2, 0.5, 0.3]), np.array([0.5, 0.25, 0.25])).round(3).tolist()
    [0.0, 0.833, 0.167]
    """
    left = np.maximum(0.0, target - draft)
    total = left.sum()
    return left / total if total > 0 else target.copy()


def acceptance(target: Floats, draft: Floats) -> float:
    """Return the chance that a draft is kept, over all tokens it may be.

    Parameters
    ----------
    target, draft : array
        The two models' probabilities of the next token, shape (vocabulary,).

    Returns
    -------
    float
        ``sum(min(target, draft))`` [ratio].

    Notes
    -----
    Derived on page B5.

    Examples
    --------
    >>> acceptance(np.array([0.2, 0.8]), np.array([0.4, 0.6]))
    0.8
    """
    return float(np.minimum(target, draft).sum())


def check_drafts(target_rows: Floats, draft_rows: Floats, drafts: Sequence[int], rng: np.random.Generator) -> list[int]:
    """Keep the drafts that pass, and add one token of the large model's own.

    Parameters
    ----------
    target_rows : array
        The large model's probabilities at each draft's place and at the one after, shape (drafts + 1, vocabulary).
    draft_rows : array
        The draft's probabilities at each draft's place, shape (drafts, vocabulary).
    drafts : sequence of int
        The drafted tokens.
    rng : numpy.random.Generator
        Where chance comes from.

    Returns
    -------
    list of int
        Kept drafts up to the first that fails, then one more token: at least one, at most drafts + 1.

    Notes
    -----
    Each draft must have been drawn from its row. Derived on page B5.

    Examples
    --------
    >>> rows = np.array([[0.0, 1.0], [1.0, 0.0]])
    >>> check_drafts(rows, rows[:1], [1], np.random.default_rng(1))
    [1, 0]
    """
    tokens: list[int] = []
    for target, draft, token in zip(target_rows, draft_rows, drafts, strict=False):
        if rng.random() >= keep_chance(target, draft)[token]:
            return [*tokens, int(rng.choice(len(target), p=residual(target, draft)))]
        tokens.append(int(token))
    return [*tokens, int(rng.choice(len(target_rows[-1]), p=target_rows[-1]))]
