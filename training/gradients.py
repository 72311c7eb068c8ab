"""Loss of a tiny model on a batch of text, and the gradient of every weight: forward and back, by hand.

The forward pass is the one of :mod:`lantern_lib.tiny.decoder`, written for whole texts and keeping what
the way back needs. A test holds the two together and checks the gradients by finite differences.
"""

from __future__ import annotations

import numpy as np

from lantern_lib.model_config import ModelConfig
from lantern_lib.tiny.layers import NORM_EPSILON, rotate, rotation, softmax


def _norm(x, gain):
    scale = 1 / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + NORM_EPSILON)
    unit = x * scale
    return unit * gain, (unit, scale, gain)


def _norm_back(grad, kept):
    unit, scale, gain = kept
    by_unit = grad * gain
    by_x = scale * (by_unit - unit * np.mean(by_unit * unit, axis=-1, keepdims=True))
    return by_x, (grad * unit).reshape(-1, unit.shape[-1]).sum(0)


def _linear(x, matrix):
    return x @ matrix.T


def _linear_back(grad, x, matrix):
    return grad @ matrix, grad.reshape(-1, grad.shape[-1]).T @ x.reshape(-1, x.shape[-1])


def _attention(queries, keys, values):
    """Attend, causally; queries (B, T, H, D), keys and values (B, T, G, D)."""
    groups = queries.shape[2] // keys.shape[2]
    batch, length, heads, size = queries.shape
    # (B, G, H/G, T, D): the query heads that share a key-value head lie together.
    q = queries.reshape(batch, length, -1, groups, size).transpose(0, 2, 3, 1, 4)
    k, v = (part.transpose(0, 2, 1, 3)[:, :, None] for part in (keys, values))
    scores = q @ k.swapaxes(-1, -2) * np.asarray(size**-0.5, q.dtype)
    scores += np.triu(np.full((length, length), -np.inf, q.dtype), 1)
    chances = softmax(scores)
    mixed = (chances @ v).transpose(0, 3, 1, 2, 4).reshape(batch, length, heads * size)
    return mixed, (q, k, v, chances)


def _attention_back(grad, kept):
    q, k, v, chances = kept
    batch, shared, groups, length, size = q.shape
    by_mixed = grad.reshape(batch, length, shared, groups, size).transpose(0, 2, 3, 1, 4)
    by_v = (chances.swapaxes(-1, -2) @ by_mixed).sum(2)
    by_chances = by_mixed @ v.swapaxes(-1, -2)
    by_scores = chances * (by_chances - (by_chances * chances).sum(-1, keepdims=True))
    by_scores *= np.asarray(size**-0.5, q.dtype)
    by_q = (by_scores @ k).transpose(0, 3, 1, 2, 4).reshape(batch, length, shared * groups, size)
    by_k = (by_scores.swapaxes(-1, -2) @ q).sum(2)
    return by_q, by_k.transpose(0, 2, 1, 3), by_v.transpose(0, 2, 1, 3)


def _attention_block(x, weights, name, config, angles, mask):
    h, norm = _norm(x, weights[f"{name}.attention_norm"])
    batch, length, _ = x.shape
    shape = (batch, length, -1, config.head_dim)
    q, k, v = (_linear(h, weights[f"{name}.{part}"]).reshape(shape) for part in ("query", "key", "value"))
    mixed, attention = _attention(rotate(q, *angles), rotate(k, *angles), v)
    return x + mask * _linear(mixed, weights[f"{name}.output"]), (h, norm, mixed, attention, mask)


def _attention_block_back(grad, kept, weights, name, angles, grads):
    h, norm, mixed, attention, mask = kept
    by_mixed, grads[f"{name}.output"] = _linear_back(grad * mask, mixed, weights[f"{name}.output"])
    by_q, by_k, by_v = _attention_back(by_mixed, attention)
    back = (angles[0], -angles[1])  # a rotation is undone by its inverse
    by_parts = {"query": rotate(by_q, *back), "key": rotate(by_k, *back), "value": by_v}
    by_h = 0
    for part, by_part in by_parts.items():
        flat = by_part.reshape(*h.shape[:2], -1)
        by_here, grads[f"{name}.{part}"] = _linear_back(flat, h, weights[f"{name}.{part}"])
        by_h = by_h + by_here
    by_x, grads[f"{name}.attention_norm"] = _norm_back(by_h, norm)
    return grad + by_x


def _feed_forward_block(x, weights, name, mask):
    h, norm = _norm(x, weights[f"{name}.feed_forward_norm"])
    gate, up = _linear(h, weights[f"{name}.gate"]), _linear(h, weights[f"{name}.up"])
    sigmoid = 0.5 + 0.5 * np.tanh(0.5 * gate)
    inner = gate * sigmoid * up
    return x + mask * _linear(inner, weights[f"{name}.down"]), (h, norm, gate, up, sigmoid, inner, mask)


def _feed_forward_block_back(grad, kept, weights, name, grads):
    h, norm, gate, up, sigmoid, inner, mask = kept
    by_inner, grads[f"{name}.down"] = _linear_back(grad * mask, inner, weights[f"{name}.down"])
    by_gate = by_inner * up * sigmoid * (1 + gate * (1 - sigmoid))
    by_up = by_inner * gate * sigmoid
    first, grads[f"{name}.gate"] = _linear_back(by_gate, h, weights[f"{name}.gate"])
    second, grads[f"{name}.up"] = _linear_back(by_up, h, weights[f"{name}.up"])
    by_x, grads[f"{name}.feed_forward_norm"] = _norm_back(first + second, norm)
    return grad + by_x


def loss_and_gradients(weights, config: ModelConfig, tokens, with_gradients: bool = True, new_mask=None):
    """Return the mean loss of predicting each next token, and the gradient of every weight.

    Parameters
    ----------
    weights : dict of str to array
        The model, as :func:`lantern_lib.tiny.shapes.tensor_shapes` names it.
    config : ModelConfig
        Its shape.
    tokens : array of int
        Pieces of text, shape (batch, length + 1): the last token is only predicted.
    with_gradients : bool
        Whether to go back, too.
    new_mask : callable, optional
        Makes a mask of a given shape for what a block adds: dropout. Without it nothing is dropped.

    Returns
    -------
    (float, dict of str to array)
        Natural-log loss for each predicted token, and gradients by name.
    """
    seen, wanted = tokens[:, :-1], tokens[:, 1:]
    angles = rotation(np.arange(seen.shape[1]), config.head_dim)
    x, kept = weights["embedding"][seen], []
    for number in range(config.num_layers):
        name = f"layers.{number}"
        masks = [new_mask(x.shape) if new_mask else np.asarray(1, x.dtype) for _ in range(2)]
        x, attention = _attention_block(x, weights, name, config, angles, masks[0])
        x, feed_forward = _feed_forward_block(x, weights, name, masks[1])
        kept.append((name, attention, feed_forward))
    h, norm = _norm(x, weights["final_norm"])
    chances = softmax(_linear(h, weights["head"]))
    right = np.take_along_axis(chances, wanted[..., None], -1)[..., 0]
    loss = float(-np.log(right.astype(np.float64)).mean())
    if not with_gradients:
        return loss, {}
    grads = {}
    np.put_along_axis(chances, wanted[..., None], (right - 1)[..., None], -1)
    by_h, grads["head"] = _linear_back(chances / np.asarray(wanted.size, chances.dtype), h, weights["head"])
    grad, grads["final_norm"] = _norm_back(by_h, norm)
    for name, attention, feed_forward in reversed(kept):
        grad = _feed_forward_block_back(grad, feed_forward, weights, name, grads)
        grad = _attention_block_back(grad, attention, weights, name, angles, grads)
    grads["embedding"] = np.zeros_like(weights["embedding"])
    np.add.at(grads["embedding"], seen, grad)
    return loss, grads
