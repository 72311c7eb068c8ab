"""How well a tiny model predicts a text: the bits that a character costs, and two baselines that only count."""

from __future__ import annotations

import numpy as np

from lantern_lib.tiny.arrays import Ints
from lantern_lib.tiny.decoder import Decoder
from lantern_lib.tiny.layers import softmax
from lantern_lib.units import require_int


def bits_per_character(model: Decoder, tokens: Ints, length: int = 128) -> float:
    """Measure how well a model predicts a text.

    Parameters
    ----------
    model : Decoder
        The model.
    tokens : array of int
        The text, shape (n,), longer than `length` [tokens].
    length : int
        Size of the pieces it is read in, 2 or more: the first token of each is only read [tokens].

    Returns
    -------
    float
        Mean of -log2 of the probability given to each next character [bits].

    Raises
    ------
    ValueError
        If the text is shorter than one piece.

    Notes
    -----
    Lower is better; an even guess over 96 characters costs log2(96) = 6.58 bits. Used in the lab of week 4.

    Examples
    --------
    >>> from lantern_lib import tiny
    >>> bits_per_character(tiny.load("draft"), tiny.encode(tiny.held_out_text())) < 3
    True
    """
    size = require_int("length", length, minimum=2)
    if len(tokens) < size:
        raise ValueError(f"tokens must be at least {size} long, got {len(tokens)}.")
    pieces = np.asarray(tokens)[: len(tokens) // size * size].reshape(-1, size)
    scores = model.extend(model.new_cache(len(pieces), size), pieces)
    chances = np.take_along_axis(softmax(scores[:, :-1].astype(np.float64)), pieces[:, 1:, None], -1)
    return float(-np.log2(chances).mean())


def counted_bits(learnt: Ints, tokens: Ints, vocab_size: int, order: int = 1) -> float:
    """Measure how well a text is predicted by counts alone.

    Parameters
    ----------
    learnt : array of int
        The text that is counted, shape (m,) [tokens].
    tokens : array of int
        The text that is predicted, shape (n,) [tokens].
    vocab_size : int
        Size of the alphabet [count].
    order : int
        1: how often each character occurs. 2: how often it follows the one before [count].

    Returns
    -------
    float
        Mean of -log2 of the probability, over all tokens but the first [bits].

    Raises
    ------
    ValueError
        If `order` is neither 1 nor 2.

    Notes
    -----
    One is added to every count, so that nothing is impossible.

    Examples
    --------
    >>> text = np.array([0, 1] * 50)
    >>> round(counted_bits(text, text, 2), 2), round(counted_bits(text, text, 2, order=2), 2)
    (1.0, 0.03)
    """
    if order not in (1, 2):
        raise ValueError(f"order must be 1 or 2, got {order!r}. More would need more text than the book has.")
    counts = np.ones((vocab_size, vocab_size))
    np.add.at(counts, (learnt[:-1], learnt[1:]), 1)
    if order == 1:
        counts = np.broadcast_to(1 + np.bincount(learnt, minlength=vocab_size), counts.shape)
    chances = counts / counts.sum(axis=1, keepdims=True)
    return float(-np.log2(chances[tokens[:-1], tokens[1:]]).mean())
