"""Values as bytes, in both directions between grader and sandbox: data only, never code, never pickle.

What is encoded by value: the exact built-in types, numeric numpy arrays and scalars, numpy generators, named tuples,
and instances of dataclasses that both sides know by name. Everything else goes through ``other``: a side keeps the
object and sends a number for it. Reading trusts nothing: lengths, counts, depth and types are checked before use.
"""

from __future__ import annotations

import dataclasses
import struct
from typing import Any

import numpy as np

MAX_DEPTH = 60
MAX_ITEMS = 2_000_000
MAX_BYTES = 64_000_000
MAX_INT_BYTES = 4096
GENERATORS = {"PCG64": np.random.PCG64, "PCG64DXSM": np.random.PCG64DXSM}


class _NoSeed(np.random.bit_generator.ISeedSequence):
    """Makes a generator without drawing a seed: its state is set at once."""

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> Any:
        """Return zeros."""
        return np.zeros(n_words, dtype)


NO_SEED = _NoSeed()


HALF = 1 << 63
U4, U8, I8, F8, REST = (struct.Struct(form) for form in ("<I", "<Q", "<q", "<d", "<BI"))


class CodecError(ValueError):
    """A value that cannot be sent, or bytes that are no value."""


@dataclasses.dataclass(frozen=True)
class Reference:
    """Something that stays where it is: ``ours`` says whether the reader is the one who holds it."""

    ours: bool
    number: int
    about: tuple[Any, ...] = ()
