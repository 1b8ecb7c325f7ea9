"""How a running pipeline looks in a terminal: a table of its nodes, and why some of them fail or warn.

Invariant: nothing here waits or asks anyone; a screen is drawn from statuses alone, and has no line
that is longer than the window and no more lines than it.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from textwrap import wrap

from rich import box
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from headwater import CaptureStatus, Status
from headwater.cli.formats import capture_lines, units
from headwater.cli.formats.clocks import ahead_texts
from headwater.errors import HeadwaterError
from headwater.values.json_ready import calendar_time

COLUMNS = {
    **{"node": 4, "state": 8, "rows/s": 7, "batch": 6, "lag": 6},
    **{"clock": 8, "late": 4, "dead": 4, "size": 8},
}
"""The columns, and their widths unless a cell needs more: they should not move with every figure."""
_LEFT = ("node", "state")
_DISPENSABLE = ("size", "batch", "late", "clock", "dead", "state")
"""What is left out first where the window is narrow."""
_GAP = 2
_NARROWEST = 16
"""The node's name is cut no further."""
_COLOURS = {
    **{"running": "green", "starting": "yellow", "waiting": "yellow", "broken": "bold red"},
    **{"streaming": "green", "snapshot": "green"},
}
_FRAME = 7
"""Lines that are not nodes: the title, the heading, a line under it, empty ones, and the cursor's."""
_NODES = 5
"""Lines that nodes are left at least: one of them, how many there are more, and an error."""
_ERROR = 2
"""Lines that an error may take."""


class Screen:
    """Draws one pipeline."""

    def __init__(self, pipeline: str, how: str):
        self._pipeline, self._how = pipeline, how
        self._started = time.monotonic()
        self._spinner = Spinner("dots")

    def draw(
        self,
        statuses: Sequence[Status],
        step: str | None,
        width: int,
        height: int,
        captures: Sequence[CaptureStatus] = (),
    ) -> RenderableType:
        """Return the whole screen; ``step`` is what goes on before there is anything to show."""
        below = capture_texts(captures, width, height) if captures else []
        height -= len(below)
        parts: list[RenderableType] = [self._title(len(statuses)), Text()]
        if step is not None:
            self._spinner.update(text=f"{step} … {time.monotonic() - self._started:.0f} s")
            parts.append(self._spinner)
        elif statuses:
            parts += nodes(statuses, width, height)
        parts += below
        return Padding(Group(*parts), (1, 0))

    def _title(self, count: int) -> Text:
        up = units.length(timedelta(seconds=int(time.monotonic() - self._started)))
        facts = [f"pipeline {self._pipeline}", *([units.plural(count, "node"), up] if count else [])]
        title = Text.assemble(("Headwater ", "bold cyan"), ", ".join(facts), (f"  {self._how}", "dim"))
        title.no_wrap, title.overflow = True, "ellipsis"
        return title


def nodes(statuses: Sequence[Status], width: int, height: int) -> list[RenderableType]:
    """Return the table of nodes and, below it, why some of them fail."""
    errors = [error_text(each.error, width) for each in statuses if each.error is not None]
    warnings = [alert for each in statuses for alert in each.alerts]
    warnings += ahead_texts(ahead for each in statuses for ahead in each.ahead)
    errors += [warning_text(each, width) for each in warnings]
    errors = errors[: max(1, (height - _FRAME) // 2 // _ERROR)]
    below = sum(len(error.plain.splitlines()) for error in errors) + bool(errors)
    shown = _fitting(statuses, height - _FRAME - below)
    parts: list[RenderableType] = [table(shown, width)]
    if len(shown) < len(statuses):
        parts.append(Text(f"and {units.plural(len(statuses) - len(shown), 'node')} more", style="dim"))
    return [*parts, *([Text()] if errors else []), *errors]


def capture_texts(captures: Sequence[CaptureStatus], width: int, height: int) -> list[Text]:
    """Return captures, a line for each, and what is wrong with them, as far as nodes leave room."""
    drawn = [Text(), *(_capture_text(each) for each in captures)]
    drawn += [warning_text(each, width) for status in captures for each in capture_lines.warnings(status)]
    lines = [line for text in drawn for line in text.split("\n", allow_blank=True)]
    for line in lines:
        line.truncate(width, overflow="ellipsis")
    room = min((height - _FRAME) // 2, height - _FRAME - _NODES)
    return lines[:room] if room > 1 else []


def _capture_text(status: CaptureStatus) -> Text:
    text = Text(f"capture {capture_lines.line(status)}")
    start = len(f"capture {status.capture}: ")
    text.stylize(_COLOURS.get(status.state, ""), start, start + len(status.state))
    return text


def table(statuses: Sequence[Status], width: int) -> Table:
    """Return the nodes and their figures, as many columns as there is room for."""
    cells = [_cells(each) for each in statuses]
    needed = {name: max(least, *(len(each[name]) for each in cells)) for name, least in COLUMNS.items()}
    if not any(each["dead"] for each in cells):  # most pipelines set nothing aside
        del needed["dead"]
    widths = _fitted(needed, width)
    drawn = Table(box=box.SIMPLE_HEAD, padding=(0, _GAP - 1, 0, 0), pad_edge=False, show_edge=False)
    for name, room in widths.items():
        right = name not in _LEFT
        drawn.add_column(name, justify="right" if right else "left", width=room, no_wrap=True)
    for each, status in zip(cells, statuses, strict=True):
        drawn.add_row(*(_styled(name, each[name], status) for name in widths))
    return drawn


def error_text(error: HeadwaterError, width: int) -> Text:
    """Return an error on one line; a narrow window folds it, and cuts what is longer than that."""
    message = f"error: {error.message}" + (f" ({error.detail})" if error.detail else "")
    text = Text("\n".join(wrap(message, width, max_lines=_ERROR, placeholder=" …")))
    text.stylize("bold red", 0, len("error:"))
    return text


def warning_text(warning: str, width: int) -> Text:
    """Return a warning on one line, or two."""
    text = Text("\n".join(wrap(f"warning: {warning}", width, max_lines=_ERROR, placeholder=" …")))
    text.stylize("bold yellow", 0, len("warning:"))
    return text


def _fitting(statuses: Sequence[Status], room: int) -> list[Status]:
    """Return the nodes that there is room for: those that do not run come first, all keep their order."""
    if len(statuses) <= room:
        return list(statuses)
    chosen = sorted(statuses, key=lambda each: each.state == "running")[: max(1, room - 1)]
    return [each for each in statuses if each in chosen]


def _cells(status: Status) -> dict[str, str]:
    return {
        "node": status.node,
        "state": status.state,
        "rows/s": f"{status.rate:,.0f}",
        "batch": f"{status.seconds:.2f} s" if status.batches else "",
        "lag": f"{status.lag:,}",
        "clock": units.short_moment(calendar_time(status.clock)),
        "late": f"{status.late:,}",
        "dead": "" if status.dead is None else f"{status.dead:,}",
        "size": units.size(status.state_bytes) if status.state_bytes else "",
    }


def _fitted(needed: Mapping[str, int], width: int) -> dict[str, int]:
    """Return the columns that fit, and their widths: a name may be cut, a figure may not."""
    least = {**needed, "node": min(needed["node"], _NARROWEST)}
    names = list(needed)
    for name in _DISPENSABLE:
        if name in names and _total(least[each] for each in names) > width:
            names.remove(name)
    spare = width - _total(least[each] for each in names)
    room = max(least["node"], min(needed["node"], least["node"] + spare))
    return {name: room if name == "node" else needed[name] for name in names}


def _total(widths: Iterable[int]) -> int:
    return sum(width + _GAP for width in widths) - _GAP


def _styled(name: str, text: str, status: Status) -> Text:
    odd = (name == "late" and status.late) or (name == "dead" and status.dead)
    return Text(text, style=_COLOURS[text] if name == "state" else "yellow" if odd else "")
