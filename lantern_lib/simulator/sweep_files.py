"""The files of a sweep: every result is one line, written when it comes, so that a killed sweep loses none.

Results go to a CSV file (nothing but the standard library), or to a folder whose name ends in ``.parquet`` (needs
pyarrow): there they wait in a CSV journal and are packed into parts, which any reader of Parquet takes as one table.
Errors have a CSV file of their own. One process writes at a time. POSIX systems only, for their locks.
"""

from __future__ import annotations

import csv
import fcntl
import io
import json
import os
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

#: Columns that every file begins with: a point's hash, and the version of the code that computed it.
OWN_COLUMNS = ("key", "version")
#: Rows that wait in the journal before they become a part of a Parquet folder.
PART_ROWS = 10_000
_held: set[Path] = set()
_guard = threading.Lock()


def encode(value: object) -> str:
    """Write a value as the text of a cell, such that :func:`decode` gives it back.

    Parameters
    ----------
    value : object
        A number, a text, None, or lists and mappings of them.

    Returns
    -------
    str
        JSON; a text stands as it is, unless it could be taken for something else [text].

    Examples
    --------
    >>> encode(2.5), encode("blocks"), encode("2.5"), decode(encode("2.5"))
    ('2.5', 'blocks', '"2.5"', '2.5')
    """
    if isinstance(value, str) and value.isprintable() and decode(value) == value:
        return value
    return json.dumps(value, default=lambda number: number.item())


def decode(text: str) -> Any:
    """Read the text of a cell.

    Parameters
    ----------
    text : str
        What :func:`encode` wrote.

    Returns
    -------
    object
        The value.

    Examples
    --------
    >>> decode("3"), decode("NaN"), decode("chunked")
    (3, nan, 'chunked')
    """
    try:
        return json.loads(text)
    except ValueError:
        return text


class Table(Protocol):
    """Rows of one kind, all with the same columns."""

    names: list[str]

    def open(self) -> None:
        """Get ready to append, and repair what a kill left behind."""
        ...

    def append(self, row: Mapping[str, object]) -> None:
        """Write one row, so that a kill of this process does not lose it."""
        ...

    def close(self) -> None:
        """Write out what waits."""
        ...

    def rows(self, columns: tuple[str, ...] = ()) -> Iterator[dict[str, Any]]:
        """Read all whole rows, or some of their columns."""
        ...


class CsvTable:
    """A CSV file; each row is one line and one write."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.names: list[str] = []
        self.num_rows = 0
        self._file = -1

    def open(self) -> None:
        """Open for appending and cut off a last line that was not written to its end."""
        self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        end = size = os.fstat(self._file).st_size
        while end:
            begin = max(0, end - 65536)
            at = os.pread(self._file, end - begin, begin).rfind(b"\n")
            if at >= 0:
                end = begin + at + 1
                break
            end = begin
        if end < size:
            os.ftruncate(self._file, end)
        self.num_rows = sum(1 for _ in self.rows(OWN_COLUMNS))

    def append(self, row: Mapping[str, object]) -> None:
        """Write one row; the first one decides the columns."""
        if not self.names:
            self.names = list(row)
            self._write(self.names)
        elif set(self.names) != set(row):
            raise ValueError(f"columns must be {', '.join(self.names)} as in {self.path.name}, got {', '.join(row)}.")
        self._write([encode(row[name]) for name in self.names])
        self.num_rows += 1

    def _write(self, cells: Iterable[str]) -> None:
        line = io.StringIO()
        csv.writer(line, lineterminator="\n").writerow(cells)
        data = memoryview(line.getvalue().encode())
        while data:
            data = data[os.write(self._file, data) :]

    def clear(self) -> None:
        """Forget all rows and the columns."""
        os.ftruncate(self._file, 0)
        self.names, self.num_rows = [], 0

    def close(self) -> None:
        """Wait until the rows are on the disk."""
        os.fsync(self._file)
        os.close(self._file)

    def rows(self, columns: tuple[str, ...] = ()) -> Iterator[dict[str, Any]]:
        """Read all whole lines; one that is being written is passed over."""
        if not self.path.exists():
            return
        with self.path.open(encoding="utf-8", newline="") as file:
            lines = csv.reader(line for line in file if line.endswith("\n"))
            self.names = next(lines, [])
            for number, cells in enumerate(lines, 2):
                if len(cells) != len(self.names):
                    raise ValueError(
                        f"{self.path.name}, line {number} must have {len(self.names)} cells, got {len(cells)}."
                        " Another program wrote here; take the line out."
                    )
                row = zip(self.names, cells, strict=True)
                yield {name: decode(text) for name, text in row if not columns or name in columns}


class ParquetTable:
    """A folder of Parquet parts, and a journal of the rows that are in none of them yet.

    Numbers are doubles, so that all parts agree; what a double does not hold is text.
    """

    def __init__(self, path: Path) -> None:
        try:
            import pyarrow.parquet
        except ImportError:
            raise ValueError(
                f"path must end in .csv without pyarrow, got {path.name!r}. Install lantern-lib[sweep]."
            ) from None
        self._arrow, self._parquet = pyarrow, pyarrow.parquet
        self.path = path
        self.names: list[str] = []
        self.journal = CsvTable(path / "_journal.csv")

    def _parts(self) -> list[Path]:
        return sorted(self.path.glob("part-*.parquet"))

    def open(self) -> None:
        """Open the journal; if its rows have become a part already, empty it."""
        self.path.mkdir(exist_ok=True)
        self.journal.open()
        if parts := self._parts():
            last = {row["key"] for row in self._part_rows(parts[-1], ("key",))}
            if any(row["key"] in last for row in self.journal.rows(("key",))):
                self.journal.clear()
            self.names = list(self._parquet.read_schema(parts[-1]).names)
        else:
            self.names = list(self.journal.names)

    def append(self, row: Mapping[str, object]) -> None:
        """Write one row to the journal, and the journal to a part when it is long enough."""
        self.names = self.names or list(row)
        if set(self.names) != set(row):
            raise ValueError(f"columns must be {', '.join(self.names)} as in {self.path.name}, got {', '.join(row)}.")
        self.journal.append({name: row[name] for name in self.names})
        if self.journal.num_rows >= PART_ROWS:
            self._pack()

    def _pack(self) -> None:
        rows = list(self.journal.rows())
        columns = {name: self._column([row[name] for row in rows]) for name in self.journal.names}
        draft = self.path / "_draft.parquet"
        self._parquet.write_table(self._arrow.table(columns), draft)
        os.replace(draft, self.path / f"part-{len(self._parts()):06d}.parquet")
        self.journal.clear()

    def _column(self, values: list[Any]) -> Any:
        kinds = {type(value) for value in values} - {type(None)}
        if kinds == {bool}:
            return self._arrow.array(values, self._arrow.bool_())
        if kinds <= {int, float} and all(abs(value) <= 2**53 for value in values if isinstance(value, int)):
            return self._arrow.array(values, self._arrow.float64())
        return self._arrow.array([encode(value) for value in values], self._arrow.string())

    def close(self) -> None:
        """Pack what waits in the journal."""
        if self.journal.num_rows:
            self._pack()
        self.journal.close()

    def _part_rows(self, part: Path, columns: tuple[str, ...]) -> Iterator[dict[str, Any]]:
        file = self._parquet.ParquetFile(part)
        for batch in file.iter_batches(columns=list(columns) or None):
            for row in batch.to_pylist():
                yield {name: decode(value) if isinstance(value, str) else value for name, value in row.items()}

    def rows(self, columns: tuple[str, ...] = ()) -> Iterator[dict[str, Any]]:
        """Read the parts, and then the journal."""
        for part in self._parts():
            yield from self._part_rows(part, columns)
        yield from self.journal.rows(columns)


def table(path: Path) -> Table:
    """Choose how results are kept from the end of a name.

    Parameters
    ----------
    path : Path
        Ends in ``.csv`` or ``.parquet``.

    Returns
    -------
    Table
        Not opened yet.

    Raises
    ------
    ValueError
        For another ending, or Parquet without pyarrow.

    Examples
    --------
    >>> type(table(Path("knee.csv"))).__name__
    'CsvTable'
    """
    if path.suffix == ".csv":
        return CsvTable(path)
    if path.suffix == ".parquet":
        return ParquetTable(path)
    raise ValueError(f"path must end in .csv or .parquet, got {path.name!r}.")


def errors(path: Path) -> CsvTable:
    """Name the file that keeps the points of a sweep that raised.

    Parameters
    ----------
    path : Path
        The sweep's results.

    Returns
    -------
    CsvTable
        Beside them, not opened yet.

    Examples
    --------
    >>> errors(Path("knee.csv")).path.name
    'knee.errors.csv'
    """
    return CsvTable(path.with_suffix(".errors.csv"))


@contextmanager
def lock(path: Path) -> Iterator[None]:
    """Keep other sweeps from writing to the same results; a kill lets go.

    Parameters
    ----------
    path : Path
        The sweep's results.

    Returns
    -------
    context manager
        Holds the lock.

    Raises
    ------
    ValueError
        If another sweep holds it, in this process or in another.

    Notes
    -----
    A record lock belongs to one process and is not inherited by its workers, so workers that outlive a killed
    sweep do not hold it. Within one process it does not hold, so that a set of names does.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, lock(Path(folder) / "knee.csv"):
    ...     print(os.listdir(folder))
    ['knee.csv.lock']
    """
    name = path.resolve().with_name(path.name + ".lock")
    with _guard:
        if name in _held:
            raise ValueError(f"path must not be in use, got {path.name!r}, to which this process is writing already.")
        _held.add(name)
    try:
        file = _locked(name)
        try:
            yield
        finally:
            name.unlink(missing_ok=True)
            os.close(file)
    finally:
        _held.discard(name)


def _locked(name: Path) -> int:
    """Open a lock file and lock it; another sweep may take it away in between, so look twice."""
    while True:
        file = os.open(name, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.read(file, 20).decode() or "unknown"
            os.close(file)
            raise ValueError(
                f"path must not be in use, got {name.name.removesuffix('.lock')!r}, to which process {holder} is"
                " writing. Wait for it, or write to another file."
            ) from None
        with suppress(FileNotFoundError):
            if os.fstat(file).st_ino == name.stat().st_ino:
                os.ftruncate(file, 0)
                os.write(file, str(os.getpid()).encode())
                return file
        os.close(file)
