"""Parameters, FLOPs and streamed bytes of a dense decoder, by component that adds up to the total.

A multiply-add is two FLOPs. Norms, softmax and activations are not counted as arithmetic: they
are below a thousandth of the matrices' share for the models of the course.
"""

from __future__ import annotations

from dataclasses import dataclass

from lantern_lib.model_config import ModelConfig
from lantern_lib.units import require_int


@dataclass(frozen=True)
class ParameterCount:
    """Parameters of one model, by component [count].

    ``embedding`` is the input table, ``head`` the output matrix (0 when the input table serves as
    output matrix too), ``norms`` and ``biases`` the vectors.
    """

    embedding: int
    attention: int
    feed_forward: int
    head: int
    norms: int
    biases: int
    tied: bool = False

    @property
    def total(self) -> int:
        """All stored parameters [count]."""
        return self.embedding + self.attention + self.feed_forward + self.head + self.norms + self.biases

    @property
    def multiplied(self) -> int:
        """Weights that take part in a matrix product for each token [count].

        Looking up a row of the input table is no product; a tied table is multiplied as output
        matrix.
        """
        return self.attention + self.feed_forward + (self.embedding if self.tied else self.head)

    @property
    def streamed(self) -> int:
        """Parameters a step reads from memory: all but the rows of an untied input table [count]."""
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
    width, query_size = model.hidden_size, model.num_heads * model.head_dim
    kv_size = model.num_kv_heads * model.head_dim
    feed_forward_matrices = 3 if model.gated else 2
    table = model.vocab_size * width
    qkv_bias = (query_size + 2 * kv_size) if model.qkv_bias else 0
    output_bias = width if model.output_bias else 0
    mlp_bias = ((feed_forward_matrices - 1) * model.intermediate_size + width) if model.mlp_bias else 0
    layer_norms = model.norms_per_layer * width + (2 * model.head_dim if model.qk_norm else 0)
    return ParameterCount(
        embedding=table,
        attention=model.num_layers * 2 * width * (query_size + kv_size),
        feed_forward=model.num_layers * feed_forward_matrices * width * model.intermediate_size,
        head=0 if model.tied_embeddings else table,
        norms=model.num_layers * layer_norms + width,
        biases=model.num_layers * (qkv_bias + output_bias + mlp_bias),
        tied=model.tied_embeddings,
    )


def weight_bytes(model: ModelConfig) -> float:
    """Return the bytes that all parameters take.

    Parameters
    ----------
    model : ModelConfig
        The shape, with its bytes per weight.

    Returns
    -------
    float
        Stored size [bytes].

    Examples
    --------
    >>> from lantern_lib.model_config import LANTERN_70B
    >>> round(weight_bytes(LANTERN_70B) / 1e9, 1)
    141.1
    """
    return parameters(model).total * model.weight_bytes


def streamed_weight_bytes(model: ModelConfig) -> float:
    """Return the bytes of weights that one step reads, whatever the batch.

    Parameters
    ----------
    model : ModelConfig
        The shape, with its bytes per weight.

    Returns
    -------
    float
        Everything but an untied input table, of which a step reads a few rows [bytes].

    Examples
    --------
    >>> from lantern_lib.model_config import LANTERN_70B
    >>> round(streamed_weight_bytes(LANTERN_70B) / 1e9, 1)
    139.0
    """
    return parameters(model).streamed * model.weight_bytes


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
    weighted sum of values, in every query head. A windowed layer sees at most its window.
    """
    per_pair = 4 * model.num_heads * model.head_dim
    everything = positions * first_context + positions * (positions - 1) // 2
    full_layers = model.num_layers - model.num_sliding_layers
    total = full_layers * everything
    if model.num_sliding_layers and model.sliding_window is not None:
        last_context = first_context + positions - 1
        # Tokens whose context is cut by the window lose what lies beyond it.
        cut_from = max(first_context, model.sliding_window)
        beyond = max(0, last_context - model.sliding_window + 1)
        start = cut_from - model.sliding_window
        lost = (start + beyond - 1) * (beyond - start) // 2 if beyond > start else 0
        total += model.num_sliding_layers * (everything - lost)
    return per_pair * total


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
