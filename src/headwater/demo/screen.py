"""How the demo looks: live tables in a terminal, a line each second elsewhere.

Invariant: nothing here waits or changes anything; a screen is drawn from scenes alone.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from datetime import timedelta
from functools import partial

from rich import box
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from headwater.demo.actors import GROUPS, PARTITIONS, ROLES, SHOPS
from headwater.demo.play import Scene

RATE_SECONDS = 1.0
"""Rates are taken over this long, the interval of the lines outside of a terminal."""
STORY = 4
TALL, WIDE = 27, 78
"""Lines that all tables take one below the other, and columns that two take side by side."""


class Screen:
    """Remembers the last scenes, for rates, and what has happened."""

    def __init__(self, started: float):
        self.started = started
        self.story: list[str] = []
        self._scenes: deque[Scene] = deque()
        self._ended = False

    def show(self, scene: Scene) -> None:
        """Take in a new scene."""
        self._scenes.append(scene)
        while len(self._scenes) > 2 and self._scenes[1].at <= scene.at - RATE_SECONDS:
            self._scenes.popleft()

    def end(self) -> None:
        """Note that nothing moves any more: there are no rates, only sums."""
        self._ended = True

    def tell(self, at: float, what: str) -> str:
        """Add a line to the story and return it."""
        self.story.append(f"{at - self.started:5.1f} s  {what}")
        return self.story[-1]

    def draw(self, height: int, width: int) -> RenderableType:
        """Return the whole screen; in a low window the story, not a table, has what room there is."""
        gap = Text()
        tables: list[RenderableType] = [self._producers(), gap, self._groups(), gap]
        if height >= TALL:
            tables += [self._partitions(), gap]
        elif width >= WIDE:
            tables[0] = _side_by_side(self._producers(), self._partitions())
        return Padding(Group(self._title(), gap, *tables, *map(Text, self.story[-STORY:])), (1, 0))

    def line(self) -> str:
        """Return one line that says the same in short."""
        now = self._scenes[-1]
        parts = [f"{self._rate(lambda s: sum(s.written))} rows/s in, {sum(now.written):,} in all"]
        for group in GROUPS:
            rate = self._rate(partial(Scene.group_read, group=group))
            parts.append(f"{group} {rate} rows/s, lag {_lag(now, group):,}")
        return f"{now.at - self.started:5.1f} s  " + " | ".join(parts)

    def _rate(self, count: Callable[[Scene], int]) -> str:
        """Return rows per second of late; nothing when it is over."""
        first, last = self._scenes[0], self._scenes[-1]
        rate = (count(last) - count(first)) / max(last.at - first.at, 0.1)
        return "" if self._ended else f"{rate:,.0f}"

    def _title(self) -> Text:
        what = f"{len(SHOPS)} producers, {len(GROUPS)} groups, 1 directory, no server"
        return Text.assemble(("Headwater ", "bold cyan"), what)

    def _producers(self) -> Table:
        table = _table("producer", ">rows/s", ">written")
        now = self._scenes[-1]
        for shop, name in enumerate(SHOPS):
            rate = self._rate(partial(_written, shop=shop))
            table.add_row(name, rate, f"{now.written[shop]:,}")
        rate = self._rate(lambda scene: sum(scene.written))
        table.add_row("all", rate, f"{sum(now.written):,}", style="bold")
        return table

    def _groups(self) -> Table:
        table = _table("member", "owns", ">rows/s", ">read", ">lag", ">behind")
        now = self._scenes[-1]
        for index, alive in enumerate(now.alive):
            if alive:
                table.add_row(*self._member(now, index))
            else:
                table.add_row(ROLES[index].name, "killed", "", f"{now.read[index]:,}", "", "", style="red")
        return table

    def _member(self, now: Scene, index: int) -> tuple[str, ...]:
        role, owned = ROLES[index], now.owned[index]
        rate = self._rate(lambda scene: scene.read[index])
        lags = [lag for lag in now.lag[role.group] if lag.partition in owned]
        records = sum(lag.records for lag in lags)
        behind = max((lag.behind for lag in lags), default=timedelta())
        name = role.name + (" (slow)" if role.pace else "")
        partitions = " ".join(map(str, owned)) or "none"
        return (
            name,
            partitions,
            rate,
            f"{now.read[index]:,}",
            f"{records:,}",
            f"{behind.total_seconds():.1f} s",
        )

    def _partitions(self) -> Table:
        table = _table("partition", *(f">{partition}" for partition in range(PARTITIONS)))
        now = self._scenes[-1]
        lags = now.lag[GROUPS[0]]
        table.add_row("end", *(f"{lag.end:,}" for lag in lags))
        for group in GROUPS:
            table.add_row(group, *(f"{lag.committed:,}" for lag in now.lag[group]))
        return table


def _written(scene: Scene, shop: int) -> int:
    return scene.written[shop]


def _lag(scene: Scene, group: str) -> int:
    return sum(lag.records for lag in scene.lag[group])


def _side_by_side(*tables: Table) -> Table:
    grid = Table.grid(padding=(0, 6, 0, 0))
    grid.add_row(*tables)
    return grid


def _table(*columns: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
    for column in columns:
        right = column[:1] == ">"
        table.add_column(column.lstrip(">"), justify="right" if right else "left", no_wrap=True)
    return table
