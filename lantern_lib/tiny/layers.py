"""The four operations that a decoder's layer is made of besides matrix products."""

from __future__ import annotations

import numpy as np

from lantern_lib.tiny.arrays import Floats, Ints

#: Added under the root of a norm, so that a zero vector stays one.
NORM_EPSILON = 1e-5

#: The slowest rotation turns once in about this many positions.
ROTARY_BASE = 10_000.0


def rms_norm(vectors: Floats, gain: Floats) -> Floats:
    """Scale vectors to a mean square of one, then by a learnt gain for each place.

    Parameters
    ----------
    vectors : array
        Shape (..., width).
    gain : array
        Shape (width,).

    Returns
    -------
    array
        Shape (..., width).

    Notes
    -----
    ``x / sqrt(mean(x^2) + 1e-5) · gain``: a norm without mean and bias.

    Examples
    --------
    >>> rms_norm(np.array([3.0, -3.0]), np.ones(2)).round(4).tolist()
    [1.0, -1.0]
    """
    square = np.mean(vectors * vectors, axis=-1, keepdims=True)
    normed: Floats = vectors / np.sqrt(square + NORM_EPSILON) * gain
    return normed


def rotation(positions: Ints, head_dim: int) -> tuple[Floats, Floats]:
    """Return cosines and sines of the angles that mark positions.

    Parameters
    ----------
    positions : array of int
        Places in the sequence, any shape [tokens].
    head_dim : int
        Size of a head, even [count].

    Returns
    -------
    (array, array)
        Cosines and sines, shape (..., head_dim / 2).

    Notes
    -----
    Pair i turns by ``position · 10000^(-2i / head_dim)`` (rotary position embedding).

    Examples
    --------
    >>> cosine, sine = rotation(np.array([0, 1]), 4)
    >>> cosine[0].tolist(), float(sine[1, 0].round(4))
    ([1.0, 1.0], 0.8415)
    """
    speeds = ROTARY_BASE ** (-np.arange(0, head_dim, 2) / head_dim)
    angles = np.asarray(positions)[..., None] * speeds
    return np.cos(angles), np.sin(angles)


def rotate(heads: Floats, cosine: Floats, sine: Floats) -> Floats:
    """Turn each pair of a head's numbers by its position's angle.

    Parameters
    ----------
    heads : array
        Queries or keys, shape (..., heads, head_dim); number i is paired with number i + head_dim / 2.
    cosine, sine : array
        From :func:`rotation`, shape (..., head_dim / 2) without the axis of the heads.

    Returns
    -------
    array
        As `heads`, in its precision.

    Examples
    --------
    >>> quarter = np.array([[0.0]]), np.array([[1.0]])
    >>> rotate(np.array([[[1.0, 0.0]]]), *quarter).tolist()
    [[[0.0, 1.0]]]
    """
    half = heads.shape[-1] // 2
    first, second = heads[..., :half], heads[..., half:]
    c, s = (part[..., None, :].astype(heads.dtype) for part in (cosine, sine))
    return np.concatenate([first * c - second * s, first * s + second * c], axis=-1)


def softmax(scores: Floats) -> Floats:
    """Turn scores into probabilities over the last axis.

    Parameters
    ----------
    scores : array
        Shape (..., n); minus infinity is allowed, though not for all of a row.

    Returns
    -------
    array
        Shape (..., n), each row with the sum 1.

    Notes
    -----
    The largest score is subtracted first: nothing changes but that the exponentials can't overflow.

    Examples
    --------
    >>> softmax(np.array([1000.0, 1000.0])).tolist()
    [0.5, 0.5]
    """
    raised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    probabilities: Floats = raised / raised.sum(axis=-1, keepdims=True)
    return probabilities


def silu(numbers: Floats) -> Floats:
    """Return x / (1 + exp(-x)), the gate of a feed-forward block.

    Parameters
    ----------
    numbers : array
        Any shape.

    Returns
    -------
    array
        Same shape.

    Examples
    --------
    >>> silu(np.array([0.0, 100.0])).tolist()
    [0.0, 100.0]
    """
    # tanh can't overflow where exp(-x) could.
    gated: Floats = numbers * (0.5 + 0.5 * np.tanh(0.5 * numbers))
    return gated
