"""Text from a decoder, token by token or in rounds of drafts; the rule that keeps drafts is the caller's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from lantern_lib.tiny.arrays import Floats, Ints
from lantern_lib.tiny.decoder import Decoder, KVCache
from lantern_lib.tiny.layers import softmax
from lantern_lib.units import require_int

#: Rows of the target, rows of the draft, drafts, generator: the tokens of the round.
Check: TypeAlias = Callable[[Floats, Floats, Sequence[int], np.random.Generator], list[int]]


@dataclass(frozen=True)
class Speculated:
    """What some rounds of speculation wrote.

    Parameters
    ----------
    tokens : tuple of int
        The new tokens, without the prompt.
    per_round : tuple of int
        Tokens of each round [tokens].
    """

    tokens: tuple[int, ...]
    per_round: tuple[int, ...]

    @property
    def tokens_per_round(self) -> float:
        """Mean tokens of a round [tokens]."""
        return sum(self.per_round) / len(self.per_round)


def next_chances(model: Decoder, tokens: Ints) -> Floats:
    """Return a model's probabilities after each token of a text.

    Parameters
    ----------
    model : Decoder
        The model.
    tokens : array of int
        The text, shape (n,).

    Returns
    -------
    array of float64
        Row i is for the token that follows token i, shape (n, vocabulary).

    Examples
    --------
    >>> from lantern_lib import tiny
    >>> next_chances(tiny.load("draft"), tiny.encode("abc")).sum(axis=1).round(12).tolist()
    [1.0, 1.0, 1.0]
    """
    scores = model.extend(model.new_cache(1, len(tokens)), np.asarray(tokens)[None])[0]
    return softmax(scores.astype(np.float64))


def _continued(model: Decoder, cache: KVCache, tokens: Sequence[int]) -> Floats:
    """Read what the cache does not hold yet, and return probabilities after each of these tokens."""
    new = np.array([tokens[int(cache.lengths[0]) :]])
    return softmax(model.extend(cache, new)[0].astype(np.float64))


def speculate(
    target: Decoder,
    draft: Decoder,
    prompt: Ints,
    num_tokens: int,
    draft_len: int,
    rng: np.random.Generator,
    check: Check,
) -> Speculated:
    """Write text in rounds: the draft guesses, the target scores all guesses in one step, a rule keeps some.

    Parameters
    ----------
    target, draft : Decoder
        The large model and its draft.
    prompt : array of int
        What the text begins with, one token or more.
    num_tokens : int
        Tokens to write at least; the last round is finished [tokens].
    draft_len : int
        Drafts of a round [tokens].
    rng : numpy.random.Generator
        Where chance comes from.
    check : callable
        Which drafts are kept and what follows them, for example
        :func:`lantern_lib.tiny.speculation.check_drafts`.

    Returns
    -------
    Speculated
        The text and the rounds.

    Raises
    ------
    ValueError
        If a number is not a whole number of 1 or more, or the rule returns no token or too many.

    Notes
    -----
    Both caches drop the keys and values of rejected drafts. Page B5 draws a round.

    Examples
    --------
    >>> from lantern_lib import tiny
    >>> from lantern_lib.tiny.speculation import check_drafts
    >>> model, rng = tiny.load("draft"), np.random.default_rng(1)
    >>> written = speculate(model, model, tiny.encode("The "), 9, 2, rng, check_drafts)
    >>> written.per_round, len(written.tokens)
    ((3, 3, 3), 9)
    """
    require_int("num_tokens", num_tokens)
    length = require_int("draft_len", draft_len, hint="Without a draft it is ordinary decoding.")
    capacity = len(prompt) + num_tokens + length + 1
    caches = target.new_cache(1, capacity), draft.new_cache(1, capacity)
    tokens = [int(token) for token in prompt]
    per_round: list[int] = []
    while sum(per_round) < num_tokens:
        guessed, rows = list(tokens), []
        for _ in range(length):
            rows.append(_continued(draft, caches[1], guessed)[-1])
            guessed.append(int(rng.choice(len(rows[-1]), p=rows[-1])))
        scored = _continued(target, caches[0], guessed)[-length - 1 :]
        new = check(scored, np.array(rows), guessed[len(tokens) :], rng)
        if not 1 <= len(new) <= length + 1:
            raise ValueError(f"check must return 1 to {length + 1} tokens, got {len(new)}.")
        tokens += new
        per_round.append(len(new))
        for cache in caches:
            # The newest token is in no cache: the next round reads it first.
            cache.truncate(np.minimum(cache.lengths, len(tokens) - 1))
    return Speculated(tuple(tokens[len(prompt) :]), tuple(per_round))
