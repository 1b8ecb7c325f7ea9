"""A table that has no end: records under their columns, printed block by block.

Invariant: memory is bounded by one block. In a terminal no line is longer than the window: wide
cells are cut, then columns are left out, and it says so; in a pipe nothing is ever cut.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Sequence

import click
from rich.cells import cell_len, set_cell_size

GAP = "  "
NARROWEST = 8
"""Columns are not cut below this; rather, the last ones are left out."""


class RecordGrid:
    """Prints rows of text under a header; columns only ever get wider."""

    def __init__(
        self, names: Sequence[str], right: Sequence[bool], room: Callable[[], int | None] | None = None
    ):
        self._names = list(names)
        self._right = list(right)
        self._widths = [0] * len(names)
        self._shown: list[int] = []
        self._room = room or _window

    def write(self, rows: Sequence[Sequence[str]]) -> None:
        """Print rows; the header comes again when the columns have to be laid out anew."""
        if not rows:
            return
        needed = [max(map(_width, column)) for column in zip(*rows, strict=True)]
        cut = self._room() is not None
        if not self._shown or (cut and self._outgrown(needed)):
            self._lay_out(needed)
            click.secho(self._line(self._names), bold=True)
        elif not cut:
            self._widths = [max(pair) for pair in zip(self._widths, needed, strict=True)]
        click.echo("\n".join(map(self._line, rows)))

    def _outgrown(self, needed: Sequence[int]) -> bool:
        """Tell whether a new layout would show more than the one in use."""
        return any(needed[i] > self._widths[i] for i in self._shown) and self._fitted(needed) != self._widths

    def _lay_out(self, needed: Sequence[int]) -> None:
        first = not self._shown
        self._widths = self._fitted(needed)
        self._shown = [index for index, width in enumerate(self._widths) if width]
        hidden = [name for name, width in zip(self._names, self._widths, strict=True) if not width]
        if hidden and first:
            note = f"no room for {', '.join(hidden)}; a wider window or --format ndjson shows them"
            click.secho(note, err=True, dim=True)

    def _fitted(self, needed: Sequence[int]) -> list[int]:
        """Return widths for the window: what is needed, else cut, else (0) not shown."""
        names = map(_width, self._names)
        widths = [max(three) for three in zip(names, needed, self._widths, strict=True)]
        room = self._room()
        if room is None:
            return widths
        while _total(widths) > room and max(widths) > NARROWEST:
            widths[widths.index(max(widths))] -= 1
        for index in reversed(range(1, len(widths))):
            if _total(widths) > room:
                widths[index] = 0
        return widths

    def _line(self, cells: Sequence[str]) -> str:
        return GAP.join(self._cell(cells[i], i) for i in self._shown).rstrip()

    def _cell(self, text: str, index: int) -> str:
        width, length = self._widths[index], _width(text)
        if length > width:  # only a window makes a column narrower than its cells
            return set_cell_size(text, width - 1) + "…"
        pad = " " * (width - length)
        return pad + text if self._right[index] else text + pad


def _window() -> int | None:
    """Return the columns of the terminal; a pipe has no limit."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def _width(text: str) -> int:
    return len(text) if text.isascii() else cell_len(text)


def _total(widths: Sequence[int]) -> int:
    shown = [width for width in widths if width]
    return sum(shown) + len(GAP) * max(0, len(shown) - 1)
