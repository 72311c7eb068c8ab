"""The shape of a model, and a small catalogue."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from lantern_lib.model_parts import Experts, FullAttention, LatentAttention, RecurrentLayers, StoredFormat
from lantern_lib.units import require_int, require_positive


class AttentionLayers(NamedTuple):
    """Layers with the same attention: how many, what they cache, and how far they look.

    ``num_layers``, ``num_kv_heads`` and ``head_dim`` are counts; ``window`` is in tokens, None for the whole context;
    ``keys_are_values`` says that values have no matrix of their own.
    """

    num_layers: int
    num_kv_heads: int
    head_dim: int
    window: int | None = None
    keys_are_values: bool = False


@dataclass(frozen=True)
class ModelConfig:
    """The shape of a decoder: dense, or with the parts of :mod:`lantern_lib.model_parts`.

    Parameters
    ----------
    name : str
        What the model is called.
    num_layers : int
        Decoder layers [count].
    hidden_size : int
        Width of a token's vector [count].
    intermediate_size : int
        Width of the feed-forward block [count].
    num_heads, num_kv_heads : int
        Query heads, and the key-value heads they share; the first is a multiple of the second [count].
    head_dim : int
        Size of one head. It is declared, not `hidden_size / num_heads` [count].
    vocab_size : int
        Rows of the embedding table as stored, padding included [count].
    gated : bool
        Whether the feed-forward block has a gate matrix (three matrices instead of two).
    tied_embeddings : bool
        Whether the input table serves as output matrix too.
    qkv_bias, output_bias, mlp_bias : bool
        Bias vectors on the query, key and value projections; on the attention output; in the feed-forward block.
    qk_norm : bool
        Whether each layer has one norm vector of `head_dim` for queries and one for keys.
    norms_per_layer : int
        Norm vectors of `hidden_size` in each layer [count].
    sliding_window : int or None
        Tokens that a windowed layer looks back on [tokens].
    num_sliding_layers : int
        How many layers are windowed; the others see the whole context [count].
    weight_bytes, kv_bytes : float
        Bytes of one stored weight and of one cached number [bytes].
    source : str
        Where the shape comes from.
    experts : Experts or None
        Experts in place of the dense block, in some or all layers.
    latent : LatentAttention or None
        Latent attention; then `num_kv_heads` is 1 and `head_dim` the size of what is cached.
    recurrent : RecurrentLayers or None
        Layers with a fixed state in place of attention.
    full_attention : FullAttention or None
        Sizes of the layers that see everything, where windowed layers have others.
    norm_bias, attention_sinks, output_gate, qk_norm_full : bool
        Norms with a bias; one learned number a query head; a gate as large as the queries; query and key norms over
        all heads together.
    mtp_layers, mtp_tables : int
        Layers that predict a further token, and tables of the vocabulary's size that the file stores for them [count].
    extra : tuple of (str, int)
        Other stored parameters by name, such as a vision tower; no decode step reads them [count].
    storage : StoredFormat or None
        The format of a quantised checkpoint; then `weight_bytes` is that of what it leaves alone.

    Raises
    ------
    ValueError
        For a field that is not a positive whole number, heads that do not divide, windowed layers without a window, or
        parts that do not go together.

    Examples
    --------
    >>> LANTERN_70B.num_heads // LANTERN_70B.num_kv_heads
    8
    """

    name: str
    num_layers: int
    hidden_size: int
    intermediate_size: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    vocab_size: int
    gated: bool = True
    tied_embeddings: bool = False
    qkv_bias: bool = False
    output_bias: bool = False
    mlp_bias: bool = False
    qk_norm: bool = False
    norms_per_layer: int = 2
    sliding_window: int | None = None
    num_sliding_layers: int = 0
    weight_bytes: float = 2.0
    kv_bytes: float = 2.0
    source: str = ""
    experts: Experts | None = None
    latent: LatentAttention | None = None
    recurrent: RecurrentLayers | None = None
    full_attention: FullAttention | None = None
    norm_bias: bool = False
    attention_sinks: bool = False
    output_gate: bool = False
    qk_norm_full: bool = False
    mtp_layers: int = 0
    mtp_tables: int = 0
    extra: tuple[tuple[str, int], ...] = ()
    storage: StoredFormat | None = None

    def __post_init__(self) -> None:
        for field in (
            "num_layers",
            "hidden_size",
            "intermediate_size",
            "num_heads",
            "num_kv_heads",
            "head_dim",
            "vocab_size",
        ):
            require_int(field, getattr(self, field))
        if self.num_heads % self.num_kv_heads:
            raise ValueError(
                f"num_kv_heads must divide num_heads ({self.num_heads}), got {self.num_kv_heads}."
                " Each key-value head serves the same number of query heads."
            )
        require_int("norms_per_layer", self.norms_per_layer, minimum=0)
        require_positive("weight_bytes", self.weight_bytes, "16-bit weights are 2 bytes.")
        require_positive("kv_bytes", self.kv_bytes, "A 16-bit cache is 2 bytes.")
        self._check_windows()
        self._check_parts()

    def _check_parts(self) -> None:
        for field in ("mtp_layers", "mtp_tables"):
            require_int(field, getattr(self, field), minimum=0)
        for name, count in self.extra:
            require_int(f"extra {name}", count, minimum=0)
        if self.experts is not None and self.experts.num_layers > self.num_layers:
            raise ValueError(
                f"experts.num_layers must be at most num_layers ({self.num_layers}), got {self.experts.num_layers}."
            )
        if self.latent is not None and (self.num_kv_heads, self.head_dim) != (1, self.latent.cached_numbers):
            raise ValueError(
                f"num_kv_heads and head_dim must be 1 and {self.latent.cached_numbers} with latent attention, got"
                f" {self.num_kv_heads} and {self.head_dim}. One compressed vector is cached for all heads."
            )
        if self.full_attention is not None and self.num_heads % self.full_attention.num_kv_heads:
            raise ValueError(
                f"full_attention.num_kv_heads must divide num_heads ({self.num_heads}), got"
                f" {self.full_attention.num_kv_heads}."
            )

    def _check_windows(self) -> None:
        require_int("num_sliding_layers", self.num_sliding_layers, minimum=0)
        if self.recurrent is not None and self.recurrent.num_layers > self.num_layers:
            raise ValueError(
                f"recurrent.num_layers must be at most num_layers ({self.num_layers}), got {self.recurrent.num_layers}."
            )
        if self.num_sliding_layers > self.num_attention_layers:
            name = "num_layers" if self.recurrent is None else "the attention layers"
            raise ValueError(
                f"num_sliding_layers must be at most {name} ({self.num_attention_layers}), got"
                f" {self.num_sliding_layers}."
            )
        if self.sliding_window is not None:
            require_int("sliding_window", self.sliding_window)
        elif self.num_sliding_layers:
            raise ValueError(
                "sliding_window must be given when num_sliding_layers is above 0, got None."
                " It is the number of tokens such a layer looks back on."
            )

    @property
    def num_attention_layers(self) -> int:
        """Layers that have a cache [count]."""
        return self.num_layers - (self.recurrent.num_layers if self.recurrent else 0)

    @property
    def num_dense_layers(self) -> int:
        """Layers with the dense feed-forward block [count]."""
        return self.num_layers - (self.experts.num_layers if self.experts else 0)

    @property
    def attention_layers(self) -> tuple[AttentionLayers, ...]:
        """The layers that have a cache, in groups that cache alike."""
        windowed, num_full = self.num_sliding_layers, self.num_attention_layers - self.num_sliding_layers
        groups: tuple[AttentionLayers, ...] = ()
        if num_full:
            full = self.full_attention or self
            same = self.full_attention is not None and self.full_attention.keys_are_values
            groups = (AttentionLayers(num_full, full.num_kv_heads, full.head_dim, None, same),)
        if windowed:
            groups += (AttentionLayers(windowed, self.num_kv_heads, self.head_dim, self.sliding_window),)
        return groups

    @property
    def summary(self) -> str:
        """One line that names the shape."""
        heads = (
            f"{self.num_heads} query heads on a latent of {self.head_dim} numbers"
            if self.latent
            else f"{self.num_heads} query and {self.num_kv_heads} key-value heads of {self.head_dim}"
        )
        feed_forward = f"feed-forward {self.intermediate_size:,}"
        if self.experts:
            chosen = f"{self.experts.experts_per_token} of {self.experts.num_experts} experts"
            feed_forward = f"{chosen} of {self.experts.expert_size:,}"
        return (
            f"{self.name}: {self.num_layers} layers, width {self.hidden_size:,}, {heads}, {feed_forward},"
            f" vocabulary {self.vocab_size:,}, {self.weight_bytes:g}-byte weights, {self.kv_bytes:g}-byte cache"
        )


LANTERN_70B = ModelConfig(
    name="Lantern 70B",
    num_layers=80,
    hidden_size=8192,
    intermediate_size=28672,
    num_heads=64,
    num_kv_heads=8,
    head_dim=128,
    vocab_size=128256,
    source="the course's own model: a dense 70B decoder with the shape of Llama 3 70B",
)
