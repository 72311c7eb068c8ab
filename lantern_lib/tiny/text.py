"""The tiny models' alphabet: a line end and the 95 printable characters of ASCII, one token each."""

from __future__ import annotations

from importlib.resources import files

import numpy as np

from lantern_lib.tiny.arrays import Ints

#: Every token in order: token 0 is the line end, token 1 the space.
ALPHABET = "\n" + "".join(chr(code) for code in range(32, 127))

#: What is written for a character outside the alphabet.
UNKNOWN = "?"

_NEAREST = str.maketrans(
    {
        "–": "-", "—": "-", "−": "-", "·": "*", "×": "x", "‘": "'", "’": "'", "“": '"', "”": '"', "…": "...",
        "≥": ">=", "≤": "<=", "≈": "~", "→": "->", "\u00a0": " ", "\t": " ", "α": "a", "β": "b", "δ": "d",
        "é": "e", "ö": "o",
    }
)  # fmt: skip


def plain(text: str) -> str:
    """Write a text in the alphabet: the nearest character, or a question mark.

    Parameters
    ----------
    text : str
        Any text [text].

    Returns
    -------
    str
        A text that :func:`encode` takes, not always of the same length [text].

    Examples
    --------
    >>> plain("2 × 3 ≥ 5 – 漢")
    '2 x 3 >= 5 - ?'
    """
    known = set(ALPHABET)
    return "".join(letter if letter in known else UNKNOWN for letter in text.translate(_NEAREST))


def encode(text: str) -> Ints:
    """Return the tokens of a text, one for each character.

    Parameters
    ----------
    text : str
        A text in the alphabet [text].

    Returns
    -------
    ndarray of int64
        Tokens, shape (len(text),).

    Raises
    ------
    ValueError
        For a character outside the alphabet.

    Examples
    --------
    >>> encode("A b\\n").tolist()
    [34, 1, 67, 0]
    """
    for letter in text:
        if letter not in ALPHABET:
            raise ValueError(f"text must be in the alphabet, got {letter!r}. `plain` writes any text in it.")
    return np.array([ALPHABET.index(letter) for letter in text], dtype=np.int64)


def decode(tokens: Ints) -> str:
    """Return the text of some tokens.

    Parameters
    ----------
    tokens : array of int
        Tokens in 0 … 95, shape (n,).

    Returns
    -------
    str
        One character each [text].

    Raises
    ------
    ValueError
        For a token outside the alphabet.

    Examples
    --------
    >>> decode(encode("the cache"))
    'the cache'
    """
    numbers = np.asarray(tokens)
    if numbers.size and not 0 <= int(numbers.min()) <= int(numbers.max()) < len(ALPHABET):
        raise ValueError(f"tokens must be in 0 … {len(ALPHABET) - 1}, got {numbers.min()} to {numbers.max()}.")
    return "".join(ALPHABET[number] for number in numbers)


def held_out_text() -> str:
    """Return the two pages of the book that the models did not learn from.

    Returns
    -------
    str
        Prose in the alphabet [text].

    Examples
    --------
    >>> len(held_out_text()) > 8_000
    True
    """
    return (files("lantern_lib.tiny") / "weights" / "held_out.txt").read_text(encoding="utf-8")
