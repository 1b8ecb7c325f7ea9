"""Small reports, in the two forms every reporting command has: a table to read, lines for scripts.

Invariant: what goes into a pipe is never cut or wrapped; only a terminal has a width.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from typing import Any

import click
from rich import box
from rich.console import Console
from rich.table import Table

_UNLIMITED = 100_000
GAP = 2


def console() -> Console:
    """Return a console on stdout that wraps in a terminal only."""
    width = None if sys.stdout.isatty() else _UNLIMITED
    return Console(highlight=False, soft_wrap=False, width=width)


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print rows under their columns; those that start with ``>`` are aligned right.

    Where the window has no room for the longest word of each column, the columns of each row come
    one below the other.
    """
    names = [column.removeprefix(">") for column in columns]
    cells = [[_cell(value) for value in row] for row in rows]
    out = console()
    right = [column[:1] == ">" for column in columns]
    words = [_least_width(texts, numeric) for numeric, *texts in zip(right, names, *cells, strict=True)]
    if sum(words) + GAP * (len(words) - 1) > out.width:
        for row in cells:
            _print_upright(out, names, row)
        return
    table = _empty_table()
    for name, numeric, word in zip(names, right, words, strict=True):
        table.add_column(name, justify="right" if numeric else "left", no_wrap=numeric, min_width=word)
    for row in cells:
        table.add_row(*row)
    out.print(table)


def _print_upright(out: Console, names: Sequence[str], row: Sequence[str]) -> None:
    table = _empty_table()
    table.show_header = False
    table.add_column()
    table.add_column(overflow="fold")
    for name, cell in zip(names, row, strict=True):
        table.add_row(name, cell)
    out.print(table)
    out.print()


def _empty_table() -> Table:
    return Table(box=box.SIMPLE_HEAD, padding=(0, GAP - 1, 0, 0), pad_edge=False, show_edge=False)


def _least_width(texts: Sequence[str], unbroken: bool) -> int:
    """Return the room that the longest text needs or, where texts may be wrapped, the longest word."""
    return max((len(part) for text in texts for part in ([text] if unbroken else text.split())), default=0)


def print_ndjson(objects: Iterable[dict[str, Any]]) -> None:
    """Print each object as one line of JSON."""
    for each in objects:
        click.echo(json.dumps(each, ensure_ascii=False, default=str))


def _cell(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int) else str(value)
