"""The shapes of the two tiny models and of every tensor that they store."""

from __future__ import annotations

from lantern_lib.model_config import ModelConfig
from lantern_lib.tiny.text import ALPHABET

_SOURCE = "trained by training/train.py on the prose of this book"

#: The model: about a million parameters, built like Lantern's own.
TARGET = ModelConfig(
    "Tiny Lantern",
    num_layers=5,
    hidden_size=128,
    intermediate_size=384,
    num_heads=4,
    num_kv_heads=2,
    head_dim=32,
    vocab_size=len(ALPHABET),
    source=_SOURCE,
)

#: Its draft: a tenth of the parameters.
DRAFT = ModelConfig(
    "Tiny Lantern's draft",
    num_layers=2,
    hidden_size=64,
    intermediate_size=192,
    num_heads=2,
    num_kv_heads=1,
    head_dim=32,
    vocab_size=len(ALPHABET),
    source=_SOURCE,
)


def tensor_shapes(config: ModelConfig) -> dict[str, tuple[int, ...]]:
    """Name every tensor that a model stores, with its shape.

    Parameters
    ----------
    config : ModelConfig
        The shape: gated, without biases, tables not tied.

    Returns
    -------
    dict of str to tuple of int
        Matrices are stored (out, in): a row makes one output number. Vectors are norm gains.

    Examples
    --------
    >>> shapes = tensor_shapes(TARGET)
    >>> shapes["layers.0.down"], len(shapes)
    ((128, 384), 48)
    """
    width, inner = config.hidden_size, config.intermediate_size
    queries, keys = config.num_heads * config.head_dim, config.num_kv_heads * config.head_dim
    layer: dict[str, tuple[int, ...]] = {
        "attention_norm": (width,),
        "query": (queries, width),
        "key": (keys, width),
        "value": (keys, width),
        "output": (width, queries),
        "feed_forward_norm": (width,),
        "gate": (inner, width),
        "up": (inner, width),
        "down": (width, inner),
    }
    shapes: dict[str, tuple[int, ...]] = {"embedding": (config.vocab_size, width)}
    shapes |= {f"layers.{number}.{name}": shape for number in range(config.num_layers) for name, shape in layer.items()}
    return shapes | {"final_norm": (width,), "head": (config.vocab_size, width)}
