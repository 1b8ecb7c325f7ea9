"""Two days of a pipeline's figures in bounded space: fine for what was just now, coarse for what was before.

A point is written each second. When ten seconds are over, their points become one besides, and so do those
of a minute; each kind is dropped when it is old enough. Rates are averaged, late and dead rows added up, of
everything else the largest counts.

Invariant: there are never more points than ``LIMIT`` for each node, however long a pipeline runs or stands
still, and a node that is no more goes with its last point.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass, fields
from itertools import pairwise
from pathlib import Path

from headwater.engine.figures.figure_store import reading
from headwater.values.json_ready import JsonReady

WHOLE = ""
"""In place of a node's name: the pipeline as a whole."""
MOST = 2_000
"""Points that are returned at the most."""


@dataclass(frozen=True)
class Resolution:
    """Points of a width, and for how long they are kept, in seconds."""

    width: int
    kept: int


RESOLUTIONS = (Resolution(1, 600), Resolution(10, 3 * 3600), Resolution(60, 48 * 3600))
LIMIT = sum(each.kept // each.width + 2 for each in RESOLUTIONS)


@dataclass(frozen=True)
class Point:
    """The figures of a node, or of the whole pipeline, at one time; None where it has no such figure."""

    node: str
    rate: float | None = None
    """Rows per second."""
    batch_seconds: float | None = None
    lag: int | None = None
    clock_behind: float | None = None
    """Seconds that its clock is behind the wall's."""
    late: int | None = None
    """Rows that came too late since the point before."""
    dead: int | None = None
    """Rows that were set aside since the point before."""
    state_bytes: int | None = None


COLUMNS = tuple(each.name for each in fields(Point))[1:]
_INSERT = "INSERT OR REPLACE INTO points VALUES (1, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_DROP_OLD = "DELETE FROM points WHERE width = ? AND time < ?"
_DROP_FUTURE = "DELETE FROM points WHERE width = ? AND time > ?"
"""They are of a clock that was wrong, and would never be old. Two statements, for the index serves each."""
_MERGE = """
INSERT OR REPLACE INTO points SELECT :coarse, time / :coarse * :coarse, node, avg(rate), max(batch_seconds),
  max(lag), max(clock_behind), sum(late), sum(dead), max(state_bytes)
FROM points WHERE width = :fine AND time >= :first AND time < :until GROUP BY 2, 3"""
_READ = """
SELECT (time - :first) / :step, avg(rate), max(batch_seconds), max(lag), max(clock_behind), sum(late),
  sum(dead), max(state_bytes)
FROM points WHERE width = :width AND time >= :first AND time < :until AND node = :node GROUP BY 1"""


@dataclass(frozen=True)
class History(JsonReady):
    """Figures over time, as columns of equal length; None where nothing is known."""

    time: tuple[int, ...]
    """When each point begins, in seconds since 1970."""
    rate: tuple[float | None, ...]
    batch_seconds: tuple[float | None, ...]
    lag: tuple[int | None, ...]
    clock_behind: tuple[float | None, ...]
    late: tuple[int | None, ...]
    dead: tuple[int | None, ...]
    state_bytes: tuple[int | None, ...]


def add_points(connection: sqlite3.Connection, now: float, points: Iterable[Point]) -> None:
    """Write the points of a second, merge those of times that are over, and drop what is old.

    It is done in a transaction of the caller's.
    """
    second = int(now)
    connection.executemany(_INSERT, [(second, *astuple(point)) for point in points])
    for fine, coarse in pairwise(RESOLUTIONS):
        _merge(connection, fine, coarse, second)
    for each in RESOLUTIONS:
        connection.execute(_DROP_OLD, (each.width, second - each.kept))
        connection.execute(_DROP_FUTURE, (each.width, second + each.width))


def _merge(connection: sqlite3.Connection, fine: Resolution, coarse: Resolution, now: int) -> None:
    """Merge the fine points of every coarse one that is over and was not merged yet."""
    until = now // coarse.width * coarse.width
    query = "SELECT max(time) FROM points WHERE width = ? AND time <= ?"
    last = connection.execute(query, (coarse.width, until)).fetchone()[0]
    first = max(until - fine.kept, 0 if last is None else last + coarse.width)
    if first < until:
        times = {"coarse": coarse.width, "fine": fine.width, "first": first, "until": until}
        connection.execute(_MERGE, times)


def read_history(home: Path, node: str, now: float, since: float, points: int) -> History:
    """Return the figures of a node of the last seconds, in a number of points at the most.

    The points have equal widths and the last one ends now; in those that nothing was noted in, all is None.
    """
    since = min(max(since, 1.0), RESOLUTIONS[-1].kept)
    resolution = next(each for each in RESOLUTIONS if since <= each.kept)
    step = _step(since, max(1, min(points, MOST)), resolution.width)
    until = (int(now) // resolution.width + 1) * resolution.width
    count = max(1, int(-(-since // step)))
    first = until - count * step
    rows: list[Sequence[float | None]] = [(None,) * len(COLUMNS)] * count
    with reading(home) as connection:
        if connection is not None:
            bounds = {"width": resolution.width, "first": first, "until": until, "step": step, "node": node}
            for index, *values in connection.execute(_READ, bounds):
                rows[index] = values
    return History(tuple(range(first, until, step)), *(tuple(column) for column in zip(*rows, strict=True)))


def _step(since: float, points: int, width: int) -> int:
    """Return how many seconds a point stands for: a multiple of those that are stored."""
    return max(1, int(-(-since // (points * width)))) * width
