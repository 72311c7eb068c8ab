"""Read a trace file line by line, and say in one sentence what is wrong with it."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NoReturn

#: A path (plain or gzip), or a file that is open for reading, in text or binary mode.
Source = str | Path | IO[Any]

MAX_LINE_BYTES = 8 * 2**20  # a prompt of a million tokens with all its ids fits in a quarter of it
MAX_TOKENS = 10**9
_GZIP = b"\x1f\x8b"


def refuse(place: str, field: str, allowed: str, value: object, hint: str = "") -> NoReturn:
    """Raise the one error of all readers: file and line, field, what was expected, what stood there.

    Parameters
    ----------
    place : str
        The file and the line [text].
    field : str
        What is wrong [text].
    allowed : str
        What it must be [text].
    value : object
        What was read; only its beginning is shown.
    hint : str
        One sentence that helps [text].

    Returns
    -------
    NoReturn
        Never.

    Raises
    ------
    ValueError
        Always.

    Examples
    --------
    >>> refuse("chat.csv, line 7", "ContextTokens", "a whole number", "many")
    Traceback (most recent call last):
    ...
    ValueError: chat.csv, line 7: ContextTokens must be a whole number, got 'many'.
    """
    shown = repr(value[:80] if isinstance(value, str) else value)
    shown = shown if len(shown) <= 60 else f"{shown[:57]}..."
    raise ValueError(f"{place}: {field} must be {allowed}, got {shown}." + (f" {hint}" if hint else "")) from None


def source_name(source: Source) -> str:
    """Return what messages call a source.

    Parameters
    ----------
    source : Source
        A path or an open file.

    Returns
    -------
    str
        The file's own name without its folder, or ``"trace"`` [text].

    Examples
    --------
    >>> source_name("traces/chat.csv.gz")
    'chat.csv.gz'
    """
    given = source if isinstance(source, str | Path) else getattr(source, "name", "trace")
    return Path(given).name if isinstance(given, str | Path) else "trace"


@contextmanager
def _opened(source: Source) -> Iterator[IO[Any] | gzip.GzipFile]:
    if not isinstance(source, str | Path):
        yield source
        return
    with Path(source).open("rb") as plain:
        packed = plain.read(2) == _GZIP
        plain.seek(0)
        if packed:
            with gzip.open(plain, "rb") as file:
                yield file
        else:
            yield plain


def _text(line: str | bytes, place: str) -> str:
    if isinstance(line, str):
        return line
    if line[:2] == _GZIP:
        raise ValueError(f"{place} is compressed. Give the path, or open the file with gzip.open.")
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        byte = line[error.start]
    raise ValueError(f"{place} must be text in UTF-8, got the byte {byte:#04x}. Save the file as UTF-8.")


def numbered_lines(source: Source, max_bytes: int = MAX_LINE_BYTES) -> Iterator[tuple[str, str]]:
    """Yield each line that is not blank, with its place for messages.

    Parameters
    ----------
    source : Source
        A path (plain or gzip) or an open file, which stays open.
    max_bytes : int
        The longest line that is read at all [bytes].

    Returns
    -------
    iterator of (str, str)
        Place, and the line without its end or a byte-order mark [text].

    Raises
    ------
    ValueError
        If a line is too long or no UTF-8, or a compressed file is cut off.

    Examples
    --------
    >>> import io
    >>> list(numbered_lines(io.BytesIO(b"a,b\\r\\n\\r\\n1,2")))
    [('trace, line 1', 'a,b'), ('trace, line 3', '1,2')]
    """
    name, number = source_name(source), 0
    try:
        with _opened(source) as file:
            while line := file.readline(max_bytes + 1):
                number += 1
                place = f"{name}, line {number}"
                if len(line) > max_bytes:
                    raise ValueError(f"{place} must be at most {max_bytes:,} bytes long, got more. Is this a trace?")
                text = _text(line, place)
                if number == 1:
                    text = text.removeprefix("\ufeff")
                if text := text.strip():
                    yield place, text
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ValueError(f"{name} must be a whole gzip file, got {error} Fetch it again.") from None
    except UnicodeDecodeError:
        raise ValueError(f"{name}, line {number + 1} must be text in UTF-8. Open the file in binary mode.") from None


def _no_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number")


_decode = json.JSONDecoder(parse_constant=_no_constant).decode


def json_object(text: str, place: str) -> dict[str, Any]:
    """Return the JSON object in a text.

    Parameters
    ----------
    text : str
        One object [text].
    place : str
        Where it stands, for the message [text].

    Returns
    -------
    dict
        Its fields.

    Raises
    ------
    ValueError
        If it is no JSON, no object, or holds NaN or an infinity.

    Examples
    --------
    >>> json_object('{"timestamp": 0}', "trace, line 1")
    {'timestamp': 0}
    """
    try:
        found = _decode(text)
    except (ValueError, RecursionError) as error:
        why = str(error).split(":")[0] if isinstance(error, ValueError) else "nested too deep"
        found, text = None, f"{text[:30]} ({why})"
    if not isinstance(found, dict):
        refuse(place, "it", "one JSON object", text, "Is the file complete?")
    return found


def token_count(record: dict[str, Any], field: str, place: str) -> int:
    """Return a field that counts tokens.

    Parameters
    ----------
    record : dict
        The row.
    field : str
        Its name [text].
    place : str
        Where the row stands [text].

    Returns
    -------
    int
        Zero or more [tokens].

    Raises
    ------
    ValueError
        If it is missing, no whole number, negative, or a billion or more.

    Examples
    --------
    >>> token_count({"in": 12}, "in", "trace, line 1")
    12
    """
    value = record.get(field)
    if type(value) is not int or not 0 <= value < MAX_TOKENS:
        refuse(place, field, "a whole number from 0 to a billion", value, "It counts tokens.")
    return value


def moment(record: dict[str, Any], field: str, place: str) -> float:
    """Return a field that tells a time.

    Parameters
    ----------
    record : dict
        The row.
    field : str
        Its name [text].
    place : str
        Where the row stands [text].

    Returns
    -------
    float
        Finite and zero or more [the file's unit].

    Raises
    ------
    ValueError
        If it is missing, no number, negative or not finite.

    Examples
    --------
    >>> moment({"t": 3}, "t", "trace, line 1")
    3.0
    """
    value = record.get(field)
    # NaN fails the comparison too.
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < 1e18:
        refuse(place, field, "a time of 0 or more", value)
    return float(value)
