"""A real model of a million parameters and its draft, small enough to train, measure and take apart on a laptop.

Both learnt from the prose of this book (``training/train.py``). Their arithmetic is what parts A and B count:
:func:`lantern_lib.transformer.parameters` of :data:`TARGET` is the number of stored weights, and the cache of
:class:`KVCache` takes what :func:`lantern_lib.kv_cache.bytes_per_token` says.
"""

from lantern_lib.tiny.decoder import Decoder, KVCache
from lantern_lib.tiny.layers import softmax
from lantern_lib.tiny.loading import load, load_weights
from lantern_lib.tiny.shapes import DRAFT, TARGET, tensor_shapes
from lantern_lib.tiny.text import ALPHABET, decode, encode, held_out_text, plain

__all__ = [
    "ALPHABET",
    "DRAFT",
    "TARGET",
    "Decoder",
    "KVCache",
    "decode",
    "encode",
    "held_out_text",
    "load",
    "load_weights",
    "plain",
    "softmax",
    "tensor_shapes",
]
