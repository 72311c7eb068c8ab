"""Parameters, FLOPs and streamed bytes of a decoder, by component that adds up to the total.

A multiply-add is two FLOPs. Norms, softmax and activations are not counted as arithmetic: they
are below a thousandth of the matrices' share for the models of the course.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from lantern_lib.matrices import bias_parameters, idle_biases, matrices, norm_parameters
from lantern_lib.model_config import ModelConfig
from lantern_lib.model_parts import FullAttention, expected_experts
from lantern_lib.units import require_int


@dataclass(frozen=True)
class ParameterCount:
    """Parameters of one model, by component [count].

    ``embedding`` is the input table, ``head`` the output matrix (0 when the input table serves as
    output matrix too), ``norms`` and ``biases`` the vectors. ``experts`` are all routed experts and ``active_experts``
    those of one token. ``mtp`` (heads for further tokens), ``extra`` (a vision tower, buffers) and ``scales`` lie in
    the file too; no component of ``total`` holds them. ``idle_biases`` are those of experts that a token does not use.
    """

    embedding: int
    attention: int
    feed_forward: int
    head: int
    norms: int
    biases: int
    tied: bool = False
    experts: int = 0
    active_experts: int = 0
    shared_experts: int = 0
    router: int = 0
    recurrent: int = 0
    mtp: int = 0
    extra: int = 0
    scales: int = 0
    idle_biases: int = 0

    @property
    def total(self) -> int:
        """All parameters of the decoder [count]."""
        dense = self.embedding + self.attention + self.feed_forward + self.head + self.norms + self.biases
        return dense + self.experts + self.shared_experts + self.router + self.recurrent

    @property
    def in_checkpoint(self) -> int:
        """Numbers that the file holds: the decoder, and what comes with it [count]."""
        return self.total + self.mtp + self.extra + self.scales

    @property
    def active(self) -> int:
        """Parameters that one token uses, of a table its share counted whole [count]."""
        return self.total - self.experts + self.active_experts - self.idle_biases

    @property
    def multiplied(self) -> int:
        """Weights that take part in a matrix product for each token [count].

        Looking up a row of the input table is no product; a tied table is multiplied as output
        matrix.
        """
        blocks = self.attention + self.feed_forward + (self.embedding if self.tied else self.head)
        return blocks + self.active_experts + self.shared_experts + self.router + self.recurrent

    @property
    def streamed(self) -> int:
        """Parameters that a large batch reads: all but the rows of an untied input table [count]."""
        return self.total - (0 if self.tied else self.embedding)


def parameters(model: ModelConfig) -> ParameterCount:
    """Count the parameters of a model.

    Parameters
    ----------
    model : ModelConfig
        The shape.

    Returns
    -------
    ParameterCount
        The components [count].

    Notes
    -----
    Attention: queries and output ``hidden_size × num_heads head_dim`` each, keys and values
    ``hidden_size × num_kv_heads head_dim`` each. Feed-forward: two or three matrices of
    ``hidden_size × intermediate_size``. Derived on page A2.

    Examples
    --------
    >>> from lantern_lib.model_config import LANTERN_70B
    >>> count = parameters(LANTERN_70B)
    >>> count.total, count.total - count.norms
    (70553706496, 70552387584)
    """
    return _count(model)


@lru_cache(maxsize=512)
def _count(model: ModelConfig) -> ParameterCount:
    """Count once for each shape: steps ask again for every token."""
    parts: dict[str, int] = {}
    active_experts = scales = 0
    for each in matrices(model):
        parts[each.component] = parts.get(each.component, 0) + each.parameters
        active_experts += each.active_parameters if each.component == "experts" else 0
        if model.storage is not None and each.component in model.storage.quantized:
            scales += each.copies * model.storage.scales(each.inputs, each.outputs)
    recurrent = model.recurrent
    return ParameterCount(
        embedding=parts["embedding"],
        attention=parts.get("attention", 0),
        feed_forward=parts.get("feed_forward", 0),
        head=parts.get("head", 0),
        norms=norm_parameters(model),
        biases=bias_parameters(model),
        tied=model.tied_embeddings,
        experts=parts.get("experts", 0),
        active_experts=active_experts,
        shared_experts=parts.get("shared_experts", 0),
        router=parts.get("router", 0),
        recurrent=parts.get("recurrent", 0) + (recurrent.num_layers * recurrent.vector_parameters if recurrent else 0),
        mtp=_mtp_parameters(model),
        extra=sum(count for _, count in model.extra),
        scales=scales + _mtp_scales(model),
        idle_biases=idle_biases(model),
    )


def _mtp_layer(model: ModelConfig) -> ModelConfig:
    """Return a model of one layer like the last, which is what predicts one token more."""
    kinds = model.experts and replace(model.experts, num_layers=1)
    return replace(
        model,
        num_layers=1,
        experts=kinds,
        recurrent=None,
        num_sliding_layers=0,
        full_attention=model.full_attention
        or (None if model.latent else FullAttention(model.num_kv_heads, model.head_dim)),
        tied_embeddings=True,
        mtp_layers=0,
        extra=(),
    )


def _mtp_parameters(model: ModelConfig) -> int:
    """Count a projection of two vectors to one, three norms and a layer each, and the tables that the file repeats."""
    tables = model.mtp_tables * model.vocab_size * model.hidden_size
    if not model.mtp_layers:
        return tables
    one = parameters(_mtp_layer(model))
    layer = one.total - one.embedding + 2 * model.hidden_size + 2 * model.hidden_size**2
    return model.mtp_layers * layer + tables


def _mtp_scales(model: ModelConfig) -> int:
    return model.mtp_layers * parameters(_mtp_layer(model)).scales if model.mtp_layers and model.storage else 0


def weight_bytes(model: ModelConfig) -> float:
    """Return the bytes that all parameters of the decoder take.

    Parameters
    ----------
    model : ModelConfig
        The shape, with its bytes per weight.

    Returns
    -------
    float
        Stored size, the scales of a quantised checkpoint included; heads for further tokens and extra parts are not
        [bytes].

    Examples
    --------
    >>> from lantern_lib.model_config import LANTERN_70B
    >>> round(weight_bytes(LANTERN_70B) / 1e9, 1)
    141.1
    """
    count = parameters(model)
    if model.storage is None:
        return count.total * model.weight_bytes
    return sum(component_bytes(model).values())


def component_bytes(model: ModelConfig) -> dict[str, float]:
    """Return the stored size of each component.

    Parameters
    ----------
    model : ModelConfig
        The shape, with its stored format.

    Returns
    -------
    dict of str to float
        Bytes by component; ``scales`` hold what blocks store beside their numbers [bytes].

    Notes
    -----
    A quantised file leaves tables, norms, routers and biases at 16 bits, so it is larger than bits times parameters.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from lantern_lib.model_config import LANTERN_70B
    >>> from lantern_lib.model_parts import StoredFormat
    >>> fp8 = replace(LANTERN_70B, storage=StoredFormat("fp8", 1.0, (0, 0), 4.0))
    >>> {name: round(size / 1e9, 2) for name, size in component_bytes(fp8).items() if size > 1e8}
    {'embedding': 2.1, 'attention': 12.08, 'feed_forward': 56.37, 'head': 2.1}
    """
    storage, sizes = model.storage, {}
    count = parameters(model)
    for name in (
        *("embedding", "attention", "feed_forward", "experts", "shared_experts", "router", "recurrent", "head"),
        *("norms", "biases"),
    ):
        each = storage.quantized_bytes if storage and name in storage.quantized else model.weight_bytes
        sizes[name] = getattr(count, name) * each
    sizes["scales"] = (count.scales - _mtp_scales(model)) * storage.scale_bytes if storage else 0.0
    return sizes


def streamed_weight_bytes(model: ModelConfig, batch_size: int = 1) -> float:
    """Return the bytes of weights that one step reads.

    Parameters
    ----------
    model : ModelConfig
        The shape, with its bytes per weight.
    batch_size : int
        Tokens of the step; it matters to a mixture of experts only [tokens].

    Returns
    -------
    float
        Everything but an untied input table, of which a step reads a few rows, and the experts that no token is
        expected to go to [bytes].

    Raises
    ------
    ValueError
        If `batch_size` is no whole number of 1 or more.

    Examples
    --------
    >>> from lantern_lib.model_config import LANTERN_70B
    >>> round(streamed_weight_bytes(LANTERN_70B) / 1e9, 1)
    139.0
    """
    require_int("batch_size", batch_size)
    if model.experts is None and model.storage is None:
        return parameters(model).streamed * model.weight_bytes
    sizes = component_bytes(model)
    share = 1.0
    if model.experts is not None:
        kinds = model.experts
        share = expected_experts(kinds.num_experts, kinds.experts_per_token, batch_size) / kinds.num_experts
    unread = 0.0 if model.tied_embeddings else sizes["embedding"]
    return sum(sizes.values()) - unread - (1 - share) * sizes["experts"]


@dataclass(frozen=True)
class FlopCount:
    """FLOPs of a piece of work, by component [FLOPs]."""

    matrices: int
    attention: int

    @property
    def total(self) -> int:
        """Both components [FLOPs]."""
        return self.matrices + self.attention


def _attention_flops(model: ModelConfig, positions: int, first_context: int) -> int:
    """Sum the attention FLOPs of tokens at consecutive contexts first_context, first_context + 1, …

    One query against one cached token costs 2 head_dim FLOPs for the score and as much for the
    weighted sum of values, in every query head. A windowed layer sees at most its window. Latent attention is
    counted with keys and values expanded, as prefill does it.
    """
    everything = positions * first_context + positions * (positions - 1) // 2
    total = 0
    for layers in model.attention_layers:
        seen = everything
        if layers.window is not None:
            last_context = first_context + positions - 1
            # Tokens whose context is cut by the window lose what lies beyond it.
            cut_from = max(first_context, layers.window)
            beyond = max(0, last_context - layers.window + 1)
            start = cut_from - layers.window
            lost = (start + beyond - 1) * (beyond - start) // 2 if beyond > start else 0
            seen -= lost
        total += layers.num_layers * _pair_flops(model, layers.head_dim) * seen
    return total


def _pair_flops(model: ModelConfig, head_dim: int) -> int:
    if model.latent is not None:
        part = model.latent
        return 2 * model.num_heads * (part.nope_dim + part.rope_dim + part.value_dim)
    return 4 * model.num_heads * head_dim


def token_flops(model: ModelConfig, context_len: int = 0) -> FlopCount:
    """Return the FLOPs of one token that attends to a context.

    Parameters
    ----------
    model : ModelConfig
        The shape.
    context_len : int
        Cached tokens it attends to, itself included [tokens].

    Returns
    -------
    FlopCount
        Matrices (two per multiplied weight) and attention [FLOPs].

    Raises
    ------
    ValueError
        If `context_len` is not a whole number of 0 or more.

    Notes
    -----
    ``2 P_used + 4 num_layers num_heads head_dim context_len``; derived on page A2.

    Examples
    --------
    >>> from lantern_lib.model_config import LANTERN_70B
    >>> round(token_flops(LANTERN_70B, 8192).total / 1e9, 1)
    160.5
    """
    require_int("context_len", context_len, minimum=0)
    return FlopCount(2 * parameters(model).multiplied, _attention_flops(model, 1, context_len))


def prompt_flops(model: ModelConfig, prompt_len: int, num_cached_tokens: int = 0) -> FlopCount:
    """Return the FLOPs of prefilling a prompt.

    Parameters
    ----------
    model : ModelConfig
        The shape.
    prompt_len : int
        Tokens to compute [tokens].
    num_cached_tokens : int
        Tokens before them whose keys and values are already there [tokens].

    Returns
    -------
    FlopCount
        Matrices and attention [FLOPs].

    Raises
    ------
    ValueError
        If a length is not a whole number, or `prompt_len` is below 1.

    Notes
    -----
    Token i attends to the cached tokens and to i tokens of the prompt, itself included. The output
    matrix is counted for every prompt token, as most formulas do; engines compute it for the last
    token alone, which saves 1.5 percent on Lantern's model. Derived on page A2.

    Examples
    --------
    >>> from lantern_lib.model_config import LANTERN_70B
    >>> prompt_flops(LANTERN_70B, 2000).attention
    5245501440000
    """
    require_int("prompt_len", prompt_len)
    require_int("num_cached_tokens", num_cached_tokens, minimum=0)
    return FlopCount(
        2 * parameters(model).multiplied * prompt_len,
        _attention_flops(model, prompt_len, num_cached_tokens + 1),
    )
