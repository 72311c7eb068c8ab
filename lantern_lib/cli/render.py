"""Print a report: with rich where it is installed and someone looks on, else as plain columns."""

from __future__ import annotations

import importlib.util
from typing import TextIO

from lantern_lib.cli.report import Report, Table


def clean(text: str) -> str:
    """Return text without what could steer a terminal.

    Parameters
    ----------
    text : str
        Words that may come from a file [text].

    Returns
    -------
    str
        One line of printable characters, others as question marks.

    Examples
    --------
    >>> clean("a\\x1b[2Jname")
    'a?[2Jname'
    """
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def plain(report: Report) -> str:
    """Return a report as plain columns.

    Parameters
    ----------
    report : Report
        What a command found.

    Returns
    -------
    str
        The text, with its last line break.

    Examples
    --------
    >>> from lantern_lib.cli.report import quantity
    >>> table = Table("Memory", (quantity("pool_bytes", "pool", 2e9, "GB", 1, "what is left"),))
    >>> print(plain(Report("size", "a model", (table,))), end="")
    a model
    <BLANKLINE>
    Memory
      pool  2.0 GB  what is left
    """
    lines = [clean(report.title)]
    for table in report.tables:
        labels = max((len(row.label) for row in table.rows), default=0)
        values = max((len(row.shown) for row in table.rows), default=0)
        lines += ["", table.title]
        for row in table.rows:
            line = f"  {clean(row.label):<{labels}}  {clean(row.shown):>{values}}  {clean(row.working)}"
            lines.append(line.rstrip())
    lines += [""] * bool(report.notes)
    lines += [f"- {clean(note)}" for note in report.notes]
    return "\n".join(lines) + "\n"


def show(report: Report, stream: TextIO, *, rich: bool = True) -> None:
    """Print a report for people.

    Parameters
    ----------
    report : Report
        What a command found.
    stream : text file
        Where to.
    rich : bool
        Draw with the package rich if it is installed.

    Examples
    --------
    >>> import sys
    >>> show(Report("size", "a model", ()), sys.stdout, rich=False)
    a model
    """
    if not rich or importlib.util.find_spec("rich") is None:
        stream.write(plain(report))
        return
    from rich.console import Console
    from rich.text import Text

    class Quitting(Console):
        """Let the caller decide what it means that the reader has gone; rich would leave with the code for no."""

        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    console = Quitting(file=stream, highlight=False, soft_wrap=False)
    console.print(Text(clean(report.title), style="bold"))
    for table in report.tables:
        console.print()
        _draw(table, console)
    if report.notes:
        console.print()
    for note in report.notes:
        console.print(Text("• " + clean(note)))


def _draw(table: Table, console: object) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table as Drawing
    from rich.text import Text

    assert isinstance(console, Console)
    drawing = Drawing(title=table.title, title_justify="left", title_style="bold", box=box.SIMPLE, show_header=False)
    drawing.add_column(no_wrap=False, min_width=12)
    drawing.add_column(justify="right", style="cyan", no_wrap=True)
    drawing.add_column(style="dim", ratio=1)
    for row in table.rows:
        # As text objects: brackets in a name that comes from a file are no markup.
        drawing.add_row(Text(clean(row.label)), Text(clean(row.shown)), Text(clean(row.working)))
    console.print(drawing)
