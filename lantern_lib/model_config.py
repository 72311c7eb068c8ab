"""The shape of a model, and a small catalogue."""

from __future__ import annotations

from dataclasses import dataclass

from lantern_lib.units import require_int, require_positive


@dataclass(frozen=True)
class ModelConfig:
    """The shape of a dense decoder.

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

    Raises
    ------
    ValueError
        For a field that is not a positive whole number, heads that do not divide, or windowed layers
        without a window.

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

    def _check_windows(self) -> None:
        require_int("num_sliding_layers", self.num_sliding_layers, minimum=0)
        if self.num_sliding_layers > self.num_layers:
            raise ValueError(
                f"num_sliding_layers must be at most num_layers ({self.num_layers}), got {self.num_sliding_layers}."
            )
        if self.sliding_window is not None:
            require_int("sliding_window", self.sliding_window)
        elif self.num_sliding_layers:
            raise ValueError(
                "sliding_window must be given when num_sliding_layers is above 0, got None."
                " It is the number of tokens such a layer looks back on."
            )

    @property
    def summary(self) -> str:
        """One line that names the shape."""
        return (
            f"{self.name}: {self.num_layers} layers, width {self.hidden_size:,}, {self.num_heads} query and"
            f" {self.num_kv_heads} key-value heads of {self.head_dim}, feed-forward {self.intermediate_size:,},"
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
