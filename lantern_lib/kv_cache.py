"""The cache of keys and values: its size, and the memory that is left for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from lantern_lib.hardware import Replica
from lantern_lib.model_config import AttentionLayers, ModelConfig
from lantern_lib.transformer import weight_bytes
from lantern_lib.units import format_quantity, require_fraction, require_int, require_positive

ReserveFrom = Literal["total", "remainder"]


def bytes_per_token(model: ModelConfig) -> float:
    """Return what one more token adds to the cache while no window is full.

    Parameters
    ----------
    model : ModelConfig
        The shape, with its bytes per cached number.

    Returns
    -------
    float
        Cache of one token over all layers [bytes].

    Notes
    -----
    ``2 num_layers num_kv_heads head_dim kv_bytes``: a key and a value, per key-value head, per
    layer. Query heads play no part. Derived on page A4.

    Examples
    --------
    >>> from lantern_lib.model_config import LANTERN_70B
    >>> bytes_per_token(LANTERN_70B)
    327680.0
    """
    return (
        sum(layers.num_layers * numbers_per_token(model, layers) for layers in model.attention_layers) * model.kv_bytes
    )


def numbers_per_token(model: ModelConfig, layers: AttentionLayers) -> int:
    """Return the numbers that one layer caches for a token.

    Parameters
    ----------
    model : ModelConfig
        The shape.
    layers : AttentionLayers
        The kind of layer, of ``model.attention_layers``.

    Returns
    -------
    int
        A key and a value for each key-value head, or one latent vector [count].

    Examples
    --------
    >>> from lantern_lib.model_config import LANTERN_70B
    >>> numbers_per_token(LANTERN_70B, LANTERN_70B.attention_layers[0])
    2048
    """
    if model.latent is not None:
        return model.latent.cached_numbers
    return 2 * layers.num_kv_heads * layers.head_dim


def numbers_per_token_per_gpu(
    model: ModelConfig, layers: AttentionLayers, tp_size: int, context_parallel: int = 1
) -> float:
    """Return the numbers that one layer caches for a token on the fullest GPU.

    Parameters
    ----------
    model : ModelConfig
        The shape.
    layers : AttentionLayers
        The kind of layer.
    tp_size : int
        GPUs that share every matrix [count].
    context_parallel : int
        GPUs of those that share the tokens of a context [count].

    Returns
    -------
    float
        Numbers on one GPU [count].

    Raises
    ------
    ValueError
        If a degree is no whole number of 1 or more.

    Notes
    -----
    A key-value head is not cut: tensor parallelism divides by the smaller of the degree and the heads. A latent vector
    has no heads, so every GPU holds it whole, unless the tokens are shared out. Page B6.

    Examples
    --------
    >>> from lantern_lib.model_config import LANTERN_70B
    >>> [numbers_per_token_per_gpu(LANTERN_70B, LANTERN_70B.attention_layers[0], tp) for tp in (4, 8, 16)]
    [512.0, 256.0, 256.0]
    """
    require_int("tp_size", tp_size)
    require_int("context_parallel", context_parallel)
    whole = numbers_per_token(model, layers)
    if model.latent is not None:
        return whole / context_parallel
    heads = -(-layers.num_kv_heads // tp_size)
    return whole * heads / layers.num_kv_heads / context_parallel


def bytes_per_token_per_gpu(model: ModelConfig, tp_size: int, context_parallel: int = 1) -> float:
    """Return what one more token adds on the fullest GPU while no window is full.

    Parameters
    ----------
    model : ModelConfig
        The shape.
    tp_size, context_parallel : int
        GPUs that share every matrix, and those of them that share the tokens [count].

    Returns
    -------
    float
        Cache of one token on one GPU [bytes].

    Raises
    ------
    ValueError
        If a degree is no whole number of 1 or more.

    Examples
    --------
    >>> from lantern_lib.model_config import LANTERN_70B
    >>> bytes_per_token_per_gpu(LANTERN_70B, 4)
    81920.0
    """
    return (
        sum(
            layers.num_layers * numbers_per_token_per_gpu(model, layers, tp_size, context_parallel)
            for layers in model.attention_layers
        )
        * model.kv_bytes
    )


def state_bytes_per_sequence(model: ModelConfig) -> float:
    """Return the state that recurrent layers keep for a sequence, whatever its length.

    Parameters
    ----------
    model : ModelConfig
        The shape.

    Returns
    -------
    float
        State of all recurrent layers, 0 without any [bytes].

    Examples
    --------
    >>> from lantern_lib.model_config import LANTERN_70B
    >>> state_bytes_per_sequence(LANTERN_70B)
    0.0
    """
    return model.recurrent.num_layers * model.recurrent.state_bytes if model.recurrent else 0.0


def bytes_per_sequence_per_gpu(model: ModelConfig, context_len: int, tp_size: int, context_parallel: int = 1) -> float:
    """Return the cache of one conversation on the fullest GPU of a replica.

    Parameters
    ----------
    model : ModelConfig
        The shape.
    context_len : int
        Tokens in the cache [tokens].
    tp_size, context_parallel : int
        GPUs that share every matrix, and those of them that share the tokens [count].

    Returns
    -------
    float
        Cache on one GPU; the heads of a recurrent state are divided like all others [bytes].

    Raises
    ------
    ValueError
        If a number is no whole one in its range.

    Examples
    --------
    >>> from lantern_lib.model_config import LANTERN_70B
    >>> bytes_per_sequence_per_gpu(LANTERN_70B, 8192, 4) / 2**30
    0.625
    """
    require_int("context_len", context_len, minimum=0)
    cached = 0.0
    for layers in model.attention_layers:
        length = context_len if layers.window is None else min(context_len, layers.window)
        each = numbers_per_token_per_gpu(model, layers, tp_size, context_parallel) * model.kv_bytes
        cached += layers.num_layers * length * each
    return cached + state_bytes_per_sequence(model) / tp_size


def bytes_per_sequence(model: ModelConfig, context_len: int) -> float:
    """Return the cache of one conversation.

    Parameters
    ----------
    model : ModelConfig
        The shape.
    context_len : int
        Tokens in the cache [tokens].

    Returns
    -------
    float
        Cache of the conversation; windowed layers stop growing at their window, a recurrent state is there from the
        first token [bytes].

    Raises
    ------
    ValueError
        If `context_len` is not a whole number of 0 or more.

    Examples
    --------
    >>> from lantern_lib.model_config import LANTERN_70B
    >>> bytes_per_sequence(LANTERN_70B, 8192) / 2**30
    2.5
    """
    require_int("context_len", context_len, minimum=0)
    cached = 0.0
    for layers in model.attention_layers:
        length = context_len if layers.window is None else min(context_len, layers.window)
        cached += layers.num_layers * length * numbers_per_token(model, layers) * model.kv_bytes
    return cached + state_bytes_per_sequence(model)


@dataclass(frozen=True)
class MemoryBudget:
    """Where a replica's memory goes [bytes]. The parts add up to ``total_bytes`` unless the model does not fit."""

    model: ModelConfig
    total_bytes: float
    weight_bytes: float
    reserve_bytes: float
    reserve_from: ReserveFrom

    @property
    def pool_bytes(self) -> float:
        """What is left for the cache; 0 when the model does not fit [bytes]."""
        return max(0.0, self.total_bytes - self.weight_bytes - self.reserve_bytes)

    def conversations(self, context_len: int) -> int:
        """Return how many whole conversations of one length fit.

        Parameters
        ----------
        context_len : int
            Length of each, the tokens still to be written included [tokens].

        Returns
        -------
        int
            Whole conversations, 0 when the model does not fit [count].

        Raises
        ------
        ValueError
            If `context_len` is not a whole number of 1 or more.
        """
        require_int("context_len", context_len, hint="An empty conversation needs no memory.")
        return int(self.pool_bytes // bytes_per_sequence(self.model, context_len))

    def require_fits(self, batch_size: int, context_len: int) -> None:
        """Refuse a batch whose cache is larger than the pool.

        Parameters
        ----------
        batch_size : int
            Sequences held together [sequences].
        context_len : int
            Length of each [tokens].

        Raises
        ------
        ValueError
            If the batch does not fit, or an argument is not a whole number of 1 or more.
        """
        require_int("batch_size", batch_size)
        most = self.conversations(context_len)
        if batch_size > most:
            raise ValueError(
                f"batch_size must be at most {most:,} at a context of {context_len:,} tokens, got {batch_size:,}."
                " Shorten the context, store the cache in fewer bytes, or add memory."
            )

    @property
    def summary(self) -> str:
        """One line that names the parts and the rule."""
        parts = (
            ("total", self.total_bytes),
            ("weights", self.weight_bytes),
            ("reserve", self.reserve_bytes),
            ("cache pool", self.pool_bytes),
        )
        amounts = ", ".join(f"{name} {format_quantity(amount, 'GB', 1)}" for name, amount in parts)
        rule = "all memory" if self.reserve_from == "total" else "what the weights leave"
        return f"{amounts}; the reserve is a share of {rule}"


def memory_budget(
    model: ModelConfig,
    replica: Replica,
    *,
    reserve: float = 0.1,
    reserve_from: ReserveFrom = "total",
    stored_weight_bytes: float | None = None,
) -> MemoryBudget:
    """Divide a replica's memory into weights, reserve and cache pool.

    Parameters
    ----------
    model : ModelConfig
        The shape.
    replica : Replica
        The machine.
    reserve : float
        Share kept free for activations, runtime and fragmentation, in [0, 1) [ratio].
    reserve_from : {"total", "remainder"}
        Whether the share is taken from all memory (Lantern's rule) or from what the weights leave.
    stored_weight_bytes : float, optional
        Bytes of the weights where you know them better than the shape tells [bytes].

    Returns
    -------
    MemoryBudget
        The parts [bytes].

    Raises
    ------
    ValueError
        If `reserve` is outside [0, 1) or `reserve_from` is neither rule.

    Notes
    -----
    The two rules differ by `reserve` times the weights. Never mix them: page A4 walks from one to
    the other. Real engines reserve by measuring a step, not by a flat share.

    Examples
    --------
    >>> from lantern_lib.hardware import H100, Replica
    >>> from lantern_lib.model_config import LANTERN_70B
    >>> memory_budget(LANTERN_70B, Replica(H100, tp_size=4)).conversations(8192)
    54
    """
    share = require_fraction("reserve", reserve, "0.1 keeps ten percent free.", zero=True)
    if reserve_from not in ("total", "remainder"):
        raise ValueError(f"reserve_from must be 'total' or 'remainder', got {reserve_from!r}.")
    weights = weight_bytes(model)
    if stored_weight_bytes is not None:
        weights = require_positive("stored_weight_bytes", stored_weight_bytes)
    total = replica.memory_bytes
    base = total if reserve_from == "total" else max(0.0, total - weights)
    return MemoryBudget(model, total, weights, share * base, reserve_from)
