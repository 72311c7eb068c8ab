"""Every matrix and vector of a model, by component: the one list that parameters, bytes and scales are counted from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lantern_lib.model_config import AttentionLayers, ModelConfig


@dataclass(frozen=True)
class Matrix:
    """Equal matrices of one component.

    ``inputs`` and ``outputs`` are the sides and ``copies`` how many there are [count]; ``active_copies`` is how many
    of them one token uses.
    """

    component: str
    inputs: int
    outputs: int
    copies: int
    active_copies: int

    @property
    def parameters(self) -> int:
        """Numbers in all copies [count]."""
        return self.inputs * self.outputs * self.copies

    @property
    def active_parameters(self) -> int:
        """Numbers in the copies that one token uses [count]."""
        return self.inputs * self.outputs * self.active_copies


def _attention(model: ModelConfig, layers: AttentionLayers) -> Iterator[tuple[int, int]]:
    """Yield the sides of one layer's projections."""
    width = model.hidden_size
    if model.latent is not None:
        part = model.latent
        heads_size = model.num_heads * (part.nope_dim + part.rope_dim)
        if part.query_rank is None:
            yield width, heads_size
        else:
            yield width, part.query_rank
            yield part.query_rank, heads_size
        yield width, part.cached_numbers
        yield part.kv_rank, model.num_heads * (part.nope_dim + part.value_dim)
        yield model.num_heads * part.value_dim, width
        return
    query_size, kv_size = model.num_heads * layers.head_dim, layers.num_kv_heads * layers.head_dim
    yield width, query_size * (2 if model.output_gate else 1)
    for _ in range(1 if layers.keys_are_values else 2):
        yield width, kv_size
    yield query_size, width


def _block(model: ModelConfig, size: int) -> Iterator[tuple[int, int]]:
    """Yield the sides of a feed-forward block's matrices."""
    for _ in range(2 if model.gated else 1):
        yield model.hidden_size, size
    yield size, model.hidden_size


def _feed_forward(model: ModelConfig) -> Iterator[Matrix]:
    for inputs, outputs in _block(model, model.intermediate_size):
        yield Matrix("feed_forward", inputs, outputs, model.num_dense_layers, model.num_dense_layers)
    experts = model.experts
    if experts is None:
        return
    layers = experts.num_layers
    for inputs, outputs in _block(model, experts.expert_size):
        yield Matrix("experts", inputs, outputs, layers * experts.num_experts, layers * experts.experts_per_token)
    if experts.shared_size:
        for inputs, outputs in _block(model, experts.shared_size):
            yield Matrix("shared_experts", inputs, outputs, layers, layers)
    yield Matrix("router", model.hidden_size, experts.num_experts, layers, layers)


def matrices(model: ModelConfig) -> tuple[Matrix, ...]:
    """List the matrices of a model: tables, projections, blocks, experts, routers, recurrent layers.

    Parameters
    ----------
    model : ModelConfig
        The shape.

    Returns
    -------
    tuple of Matrix
        In the order of the model; heads for multi-token prediction and extra parts are left out.

    Examples
    --------
    >>> from lantern_lib.model_config import LANTERN_70B
    >>> sum(m.parameters for m in matrices(LANTERN_70B) if m.component == "attention")
    12079595520
    """
    table = Matrix("embedding", model.vocab_size, model.hidden_size, 1, 1)
    made = [table]
    for layers in model.attention_layers:
        count = layers.num_layers
        made += [Matrix("attention", i, o, count, count) for i, o in _attention(model, layers)]
    if model.recurrent is not None:
        count = model.recurrent.num_layers
        made += [Matrix("recurrent", i, o, count, count) for i, o in model.recurrent.matrices]
    made += [each for each in _feed_forward(model) if each.copies]
    if not model.tied_embeddings:
        made.append(Matrix("head", model.hidden_size, model.vocab_size, 1, 1))
    return tuple(made)


def _layer_norms(model: ModelConfig, layers: AttentionLayers) -> int:
    each = model.norms_per_layer * model.hidden_size * (2 if model.norm_bias else 1)
    if model.latent is not None:
        return each + model.latent.kv_rank + (model.latent.query_rank or 0)
    if model.qk_norm_full:
        return each + (model.num_heads + layers.num_kv_heads) * layers.head_dim
    return each + (2 * layers.head_dim if model.qk_norm else 0)


def norm_parameters(model: ModelConfig) -> int:
    """Count the numbers in all norms.

    Parameters
    ----------
    model : ModelConfig
        The shape.

    Returns
    -------
    int
        Norms of the layers, of queries, keys and latents, and the last one [count].

    Examples
    --------
    >>> from lantern_lib.model_config import LANTERN_70B
    >>> norm_parameters(LANTERN_70B)
    1318912
    """
    one = model.hidden_size * (2 if model.norm_bias else 1)
    total = sum(layers.num_layers * _layer_norms(model, layers) for layers in model.attention_layers)
    if model.recurrent is not None:
        total += model.recurrent.num_layers * model.norms_per_layer * one
    return total + one


def bias_parameters(model: ModelConfig) -> int:
    """Count the numbers in biases, attention sinks and the routers' vectors.

    Parameters
    ----------
    model : ModelConfig
        The shape.

    Returns
    -------
    int
        All vectors that are no norms and belong to no recurrent layer [count].

    Examples
    --------
    >>> from lantern_lib.model_config import LANTERN_70B
    >>> bias_parameters(LANTERN_70B)
    0
    """
    width, total = model.hidden_size, 0
    inner = 2 if model.gated else 1
    for layers in model.attention_layers:
        query_size, kv_size = model.num_heads * layers.head_dim, layers.num_kv_heads * layers.head_dim
        each = (query_size + 2 * kv_size) if model.qkv_bias else 0
        each += width if model.output_bias else 0
        total += layers.num_layers * (each + (model.num_heads if model.attention_sinks else 0))
    if model.mlp_bias:
        total += model.num_dense_layers * (inner * model.intermediate_size + width)
    experts = model.experts
    if experts is not None:
        each = experts.router_vectors * experts.num_experts + (width if experts.shared_gate else 0)
        if experts.expert_bias:
            each += experts.num_experts * (inner * experts.expert_size + width)
        total += experts.num_layers * each
    return total


def idle_biases(model: ModelConfig) -> int:
    """Count the biases of the experts that one token does not go to.

    Parameters
    ----------
    model : ModelConfig
        The shape.

    Returns
    -------
    int
        Part of :func:`bias_parameters` [count].

    Examples
    --------
    >>> from lantern_lib.model_config import LANTERN_70B
    >>> idle_biases(LANTERN_70B)
    0
    """
    experts = model.experts
    if experts is None or not experts.expert_bias:
        return 0
    each = (2 if model.gated else 1) * experts.expert_size + model.hidden_size
    return experts.num_layers * (experts.num_experts - experts.experts_per_token) * each
