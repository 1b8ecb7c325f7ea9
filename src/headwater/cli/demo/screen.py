"""How the demo looks: the nodes as ``headwater run`` shows them, and below a few rows of each view.

Invariant: nothing here waits or asks anyone; a screen is drawn from scenes alone, and has no line
that is longer than the window and no more lines than it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

import pyarrow as pa
from rich.console import Console, Group, RenderableType
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from headwater import Status
from headwater.cli.demo.customers import Update
from headwater.cli.demo.views import ViewSample
from headwater.cli.formats import units
from headwater.cli.screens.run_screen import nodes

WIDE = 72
"""Columns from which on two views stand side by side."""
_GAP = 2
_BETWEEN = 3
_HEADS = 2
"""Lines of a view that are not rows: its name, and the names of its columns."""


@dataclass(frozen=True)
class Scene:
    """Everything there is to see at one moment."""

    written: int
    """Events in the log."""
    statuses: Sequence[Status] = ()
    views: Sequence[ViewSample] = ()
    step: str | None = None
    """What goes on before the nodes run."""
    update: Update | None = None
    """What was changed last in the customers' database."""


class DemoScreen:
    """Draws scenes; rows that were not there a moment before stand out."""

    def __init__(self, how: str, more: str, dashboard: str | None = None):
        self._how, self._more, self._dashboard = how, more, dashboard
        self._started = time.monotonic()
        self._spinner = Spinner("dots")
        self._before: Mapping[str, ViewSample] = {}
        self._views: Sequence[ViewSample] = ()

    def draw(self, scene: Scene, console: Console) -> RenderableType:
        """Return the whole screen."""
        if scene.views is not self._views:
            self._before, self._views = {each.name: each for each in self._views}, scene.views
        parts = [self._title(scene), *self._address(), *_told(scene.update, console.width), Text()]
        if scene.step is not None:
            self._spinner.update(text=f"{scene.step} … {self._seconds():.0f} s")
            return Group(*parts, self._spinner)
        if scene.statuses:
            parts += nodes(scene.statuses, console.width, console.height)
        room = console.height - 1 - len(console.render_lines(Group(*parts), pad=False))
        return Group(*parts, *self._below(scene.views, console.width, room))

    def line(self, scene: Scene) -> str:
        """Return a scene in a line, for where there is no terminal."""
        progress = f"{self._seconds():4.0f} s  {units.plural(scene.written, 'event')} written"
        if not scene.statuses:
            return progress
        rows = ", ".join(f"{each.name} {units.plural(each.count, 'row')}" for each in scene.views)
        return f"{progress}, {sum(each.lag for each in scene.statuses):,} to process; {rows}"

    def _title(self, scene: Scene) -> Text:
        up = units.length(timedelta(seconds=int(self._seconds())))
        facts = f"demo, a shop, {up}, {units.plural(scene.written, 'event')} written"
        title = Text.assemble(("Headwater ", "bold cyan"), facts, (f"  {self._how}", "dim"))
        title.no_wrap, title.overflow = True, "ellipsis"
        return title

    def _address(self) -> list[RenderableType]:
        if self._dashboard is None:
            return []
        return [Text.assemble("dashboard  ", (self._dashboard, "bold underline"), no_wrap=True)]

    def _seconds(self) -> float:
        return time.monotonic() - self._started

    def _below(self, views: Sequence[ViewSample], width: int, room: int) -> list[RenderableType]:
        """Return the views that there is room for, and a command to look closer."""
        more = [Text(), Text(self._more, style="dim")] if len(self._more) <= width else []
        beside = 2 if width >= WIDE else 1
        lines = -(-len(views) // beside)
        while lines and (room - len(more)) // lines < _HEADS + 2:  # an empty line and a row at least
            lines -= 1
        if not lines:
            return []
        rows = (room - len(more)) // lines - _HEADS - 1
        wide = (width - _BETWEEN * (beside - 1)) // beside
        grid = Table.grid(padding=(0, _BETWEEN, 0, 0), pad_edge=False)
        for _ in range(beside):
            grid.add_column(width=wide)
        for first in range(0, lines * beside, beside):
            part = views[first : first + beside]
            grid.add_row(*(Group(Text(), *self._panel(each, rows, wide)) for each in part))
        return [grid, *more]

    def _panel(self, view: ViewSample, rows: int, width: int) -> list[RenderableType]:
        size = units.plural(view.count, "row")
        title = Text.assemble((view.name, "bold"), f"  {size}", (f"  {view.description}", "dim"))
        title.no_wrap, title.overflow = True, "ellipsis"
        if not view.rows:
            return [title, Text("nothing yet", style="dim")]
        widths = _fitted(view, rows, width)
        table = Table(box=None, padding=(0, _GAP, 0, 0), pad_edge=False, header_style="dim")
        for index, room in widths.items():
            right = _is_number(view.schema[index].type)
            name = view.schema[index].name
            table.add_column(name, justify="right" if right else "left", width=room, no_wrap=True)
        earlier = self._before.get(view.name)
        for row in view.rows[:rows]:
            style = "green" if earlier is not None and row not in earlier.rows else ""
            table.add_row(*(row[index] for index in widths), style=style)
        return [title, table]


def _told(update: Update | None, width: int) -> list[RenderableType]:
    """Return the line that follows an update, if there is one."""
    if update is None:
        return []
    style = "yellow" if update.seconds is None else "green"
    return [Text(update.text(width), style=style, no_wrap=True, overflow="ellipsis")]


def _fitted(view: ViewSample, rows: int, width: int) -> dict[int, int]:
    """Return the columns that fit, by place, and their widths: times are left out first, then the last."""
    widths = {
        index: max(len(field.name), *(len(row[index]) for row in view.rows[:rows]))
        for index, field in enumerate(view.schema)
    }
    times = [index for index in widths if pa.types.is_timestamp(view.schema[index].type)]
    others = [index for index in reversed(widths) if index not in times]
    for index in (*times, *others[:-1]):
        if sum(widths.values()) + _GAP * (len(widths) - 1) > width:
            del widths[index]
    return widths


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))
