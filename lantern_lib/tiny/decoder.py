"""A real decoder in numpy: prefill, decode in a batch, and a key-value cache that is really kept.

It is the machine of part A at a size that a laptop runs: grouped-query attention, rotary positions, a gated
feed-forward block. One method serves all phases. With an empty cache it is a prefill, with one new token for each
sequence a decode step, with several new tokens the check of speculative decoding.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from lantern_lib.model_config import ModelConfig
from lantern_lib.tiny.arrays import Floats, Ints
from lantern_lib.tiny.layers import rms_norm, rotate, rotation, silu, softmax
from lantern_lib.tiny.shapes import tensor_shapes
from lantern_lib.units import require_int


class KVCache:
    """Keys and values of a batch of sequences, in all layers.

    Parameters
    ----------
    config : ModelConfig
        The model's shape.
    batch_size : int
        Sequences [sequences].
    capacity : int
        Tokens that each sequence can hold [tokens].
    dtype : type
        Precision of a cached number.

    Raises
    ------
    ValueError
        If a number is not a whole number of 1 or more.

    Examples
    --------
    >>> from lantern_lib.tiny.shapes import TARGET
    >>> cache = KVCache(TARGET, batch_size=2, capacity=100)
    >>> cache.keys.shape, cache.nbytes // (2 * 100)
    ((5, 2, 100, 2, 32), 2560)
    """

    def __init__(self, config: ModelConfig, batch_size: int, capacity: int, dtype: type = np.float32) -> None:
        shape = (
            config.num_layers,
            require_int("batch_size", batch_size),
            require_int("capacity", capacity),
            config.num_kv_heads,
            config.head_dim,
        )
        self.keys: Floats = np.zeros(shape, dtype)
        self.values: Floats = np.zeros(shape, dtype)
        self.lengths: Ints = np.zeros(batch_size, np.int64)

    @property
    def nbytes(self) -> int:
        """What it takes in memory, used or not [bytes]."""
        return self.keys.nbytes + self.values.nbytes

    @property
    def capacity(self) -> int:
        """Tokens that each sequence can hold [tokens]."""
        return int(self.keys.shape[2])

    def truncate(self, lengths: Sequence[int] | Ints) -> None:
        """Forget the newest tokens, as after drafts that were not kept.

        Parameters
        ----------
        lengths : sequence of int
            Tokens to keep of each sequence [tokens].

        Raises
        ------
        ValueError
            If a length is negative or more than the sequence has.
        """
        kept = np.asarray(lengths, np.int64)
        if kept.shape != self.lengths.shape or (kept < 0).any() or (kept > self.lengths).any():
            raise ValueError(f"lengths must be in 0 … {self.lengths.tolist()}, got {kept.tolist()}.")
        self.lengths = kept.copy()


def _times(vectors: Floats, matrix: Floats) -> Floats:
    # As one flat product: with a batch axis numpy multiplies sequence by sequence, and reads the matrix each time.
    flat = vectors.reshape(-1, vectors.shape[-1]) @ matrix.T
    return flat.reshape(*vectors.shape[:-1], matrix.shape[0])


class Decoder:
    """A model that decodes.

    Parameters
    ----------
    config : ModelConfig
        Its shape.
    weights : mapping of str to array
        Every tensor of :func:`lantern_lib.tiny.shapes.tensor_shapes`.
    dtype : type
        Precision of weights, arithmetic and cache while it runs, whatever they are stored in.

    Raises
    ------
    ValueError
        If a tensor is missing, unknown or has another shape.

    Examples
    --------
    >>> from lantern_lib import tiny
    >>> model = tiny.load("draft")
    >>> cache = model.new_cache(1, 100)
    >>> chances = model.extend(cache, tiny.encode("the cach")[None])
    >>> tiny.decode([chances[0, -1].argmax()])
    'e'
    """

    def __init__(self, config: ModelConfig, weights: Mapping[str, Floats], dtype: type = np.float32) -> None:
        shapes = tensor_shapes(config)
        if weights.keys() != shapes.keys():
            raise ValueError(f"weights must have the tensors of {config.name}, got {sorted(weights)}.")
        for name, shape in shapes.items():
            if weights[name].shape != shape:
                raise ValueError(f"{name} must have the shape {shape}, got {weights[name].shape}.")
        self.config = config
        self.dtype = dtype
        self.weights: dict[str, Floats] = {name: weights[name].astype(dtype) for name in shapes}

    def new_cache(self, batch_size: int, capacity: int) -> KVCache:
        """Return an empty cache for this model, as :class:`KVCache` describes it."""
        return KVCache(self.config, batch_size, capacity, self.dtype)

    def extend(self, cache: KVCache, tokens: Ints) -> Floats:
        """Read new tokens of every sequence and score what may follow each of them.

        Parameters
        ----------
        cache : KVCache
            What came before; the new keys and values are added to it. Sequences may have different lengths.
        tokens : array of int
            The same number of new tokens for each sequence, shape (batch, new).

        Returns
        -------
        array
            Scores of the next token before the softmax, shape (batch, new, vocabulary).

        Raises
        ------
        ValueError
            If the tokens do not fit the batch, the vocabulary or the cache.

        Notes
        -----
        ``x += attention(norm(x)); x += feed_forward(norm(x))`` in each layer, then a norm and the head.
        A token attends to itself and to all before it. Page A1 names the parts.
        """
        positions = self._positions(cache, tokens)
        turns = rotation(positions, self.config.head_dim)
        x = self.weights["embedding"][tokens]
        for layer in range(self.config.num_layers):
            h = rms_norm(x, self.weights[f"layers.{layer}.attention_norm"])
            x = x + self._attention(layer, h, cache, positions, turns)
            h = rms_norm(x, self.weights[f"layers.{layer}.feed_forward_norm"])
            gate, up = self._product(layer, "gate", h), self._product(layer, "up", h)
            x = x + self._product(layer, "down", silu(gate) * up)
        cache.lengths = cache.lengths + tokens.shape[1]
        return _times(rms_norm(x, self.weights["final_norm"]), self.weights["head"])

    def _positions(self, cache: KVCache, tokens: Ints) -> Ints:
        """Check what was given and return the position of each new token, shape (batch, new)."""
        if tokens.ndim != 2 or tokens.shape[0] != len(cache.lengths) or tokens.shape[1] < 1:
            raise ValueError(f"tokens must have the shape ({len(cache.lengths)}, new), got {tokens.shape}.")
        if not 0 <= int(tokens.min()) <= int(tokens.max()) < self.config.vocab_size:
            raise ValueError(
                f"tokens must be in 0 … {self.config.vocab_size - 1}, got {tokens.min()} to {tokens.max()}."
            )
        positions: Ints = cache.lengths[:, None] + np.arange(tokens.shape[1])
        if int(positions.max()) >= cache.capacity:
            raise ValueError(
                f"capacity must be above {positions.max()}, got {cache.capacity}. It holds prompt and answer."
            )
        return positions

    def _product(self, layer: int, name: str, x: Floats) -> Floats:
        return _times(x, self.weights[f"layers.{layer}.{name}"])

    def _attention(
        self, layer: int, h: Floats, cache: KVCache, positions: Ints, turns: tuple[Floats, Floats]
    ) -> Floats:
        config, (batch, new, _) = self.config, h.shape
        heads = (batch, new, -1, config.head_dim)
        queries = rotate(self._product(layer, "query", h).reshape(heads), *turns)
        rows = np.arange(batch)[:, None]
        cache.keys[layer][rows, positions] = rotate(self._product(layer, "key", h).reshape(heads), *turns)
        cache.values[layer][rows, positions] = self._product(layer, "value", h).reshape(heads)
        # Only the part of the cache that somebody has written is read.
        seen = int(positions.max()) + 1
        # (batch, key-value heads, 1, tokens, size): the query heads of a group share what they attend to.
        keys, values = (part[layer, :, :seen].swapaxes(1, 2)[:, :, None] for part in (cache.keys, cache.values))
        grouped = queries.reshape(batch, new, config.num_kv_heads, -1, config.head_dim).transpose(0, 2, 3, 1, 4)
        scores = grouped @ keys.swapaxes(-1, -2) * self.dtype(config.head_dim**-0.5)
        hidden = np.arange(seen) > positions[:, :, None]
        scores = np.where(hidden[:, None, None], -np.inf, scores)
        mixed = (softmax(scores) @ values).transpose(0, 3, 1, 2, 4).reshape(batch, new, -1)
        return self._product(layer, "output", mixed.astype(self.dtype))
