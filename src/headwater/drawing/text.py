"""A pipeline for a terminal: a name on each line, and below it a line down to those who read it.

Each row is drawn to the right of all lines that are still open, so names are never crossed. Where the
window has no room for that, the rows become a list. Invariant: no line is wider than the window, except
for a name that is.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, repeat

from headwater.drawing.label import everything, label
from headwater.pipeline.declaration import Declaration
from headwater.pipeline.pipeline import Pipeline

STEP = 3
"""The room between two lines that go down."""
GAP = "   "
LEAST = 16
"""The room that what is said of a name must have beside the drawing."""
_WIDE = 100_000


def as_text(pipeline: Pipeline, width: int | None = None) -> str:
    """Return the drawing for a window of ``width`` columns; None is a pipe, which has no width.

    >>> shop = Pipeline("shop")
    >>> _ = shop.source("orders", "id BIGINT")
    >>> _ = shop.table("customers", "id BIGINT", key="id")
    >>> _ = shop.sql("rich_orders", "SELECT * FROM orders JOIN customers USING (id)", key="id")
    >>> print(as_text(shop))
    orders              source
    │  customers        table, key id
    └──┴▶ rich_orders   view, key id
    """
    declared = _closest(everything(pipeline))
    rows = list(_Rails(declared).rows())
    room = max((len(row) for row, _ in rows), default=0) + len(GAP)
    beside = _WIDE if width is None else width - room
    if beside < LEAST:
        return "\n".join(line for each in declared for line in _listed(each, width or _WIDE))
    return "\n".join(
        f"{left:{room}}{right}".rstrip()
        for (row, below), each in zip(rows, declared, strict=True)
        for left, right in zip(chain([row], repeat(below)), textwrap.wrap(label(each), beside), strict=False)
    )


def _closest(declared: tuple[Declaration, ...]) -> list[Declaration]:
    """Order the rows so that few lines are open at a time: what is ready, then what lacks least."""
    inner = [each for each in declared if each.upstreams]
    ends = {each.name: each for each in declared if not each.upstreams}
    placed: dict[str, Declaration] = {}
    while inner:
        ready = [each for each in inner if all(name in placed or name in ends for name in each.upstreams)]
        chosen = min(ready, key=lambda each: sum(name not in placed for name in each.upstreams))
        placed.update((name, ends[name]) for name in chosen.upstreams if name in ends and name not in placed)
        placed[chosen.name] = chosen
        inner.remove(chosen)
    return [*placed.values(), *(each for each in ends.values() if each.name not in placed)]


def _listed(declared: Declaration, width: int) -> Iterator[str]:
    """Write a declaration as a paragraph that fits into any window."""
    yield declared.name
    for line in (label(declared), *(f"◀ {name}" for name in declared.upstreams)):
        yield from textwrap.wrap(line, max(width, 12), initial_indent="  ", subsequent_indent="    ")


@dataclass
class _Rail:
    """The line below a name; it goes down to its last reader."""

    column: int
    readers: int


class _Rails:
    """The lines that are open, row after row."""

    def __init__(self, declared: list[Declaration]):
        self._declared = declared
        self._open: dict[str, _Rail] = {}
        self._readers = {each.name: 0 for each in declared}
        for each in declared:
            for name in each.upstreams:
                self._readers[name] += 1

    def rows(self) -> Iterator[tuple[str, str]]:
        """Draw each row, and what goes on below it."""
        for declaration in self._declared:
            column = max((rail.column + 1 for rail in self._open.values()), default=0)
            read = [self._open[name] for name in declaration.upstreams]
            row = self._lead(column, read) + declaration.name
            self._advance(declaration, column, read)
            yield row, self._lead(column + 1, [])

    def _advance(self, declaration: Declaration, column: int, read: list[_Rail]) -> None:
        for rail in read:
            rail.readers -= 1
        self._open = {name: rail for name, rail in self._open.items() if rail.readers}
        if self._readers[declaration.name]:
            self._open[declaration.name] = _Rail(column, self._readers[declaration.name])

    def _lead(self, column: int, read: list[_Rail]) -> str:
        """Draw what is left of a name: the open lines, and those that bend towards it."""
        open_at = {rail.column: rail for rail in self._open.values()}
        first = min((rail.column for rail in read), default=column)
        drawn = ""
        for at in range(column):
            fill = "─" if at >= first else " "
            drawn += _crossing(open_at.get(at), read, at == first) or (fill if at > first else " ")
            drawn += fill * (STEP - 1)
        return drawn[:-2] + "▶ " if read else drawn


def _crossing(rail: _Rail | None, read: list[_Rail], first: bool) -> str:
    if rail is None:
        return ""
    if rail not in read:
        return "│"  # the line to the name passes behind it
    goes_on = rail.readers > 1
    if first:
        return "├" if goes_on else "└"
    return "┼" if goes_on else "┴"
