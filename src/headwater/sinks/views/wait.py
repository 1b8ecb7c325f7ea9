"""Waiting until a view has got as far as a reader needs: reading one's own writes.

A commit becomes visible through memory that SQLite's connections share, of which no file event
tells, so the wait is a short sleep that grows to 20 ms, and a look at a number (3 µs) that differs
when another connection has committed. Invariant: what is committed while nobody looks is seen by
the next look.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator

from headwater.errors import Behind, UsageError, nearest
from headwater.log.position import Position
from headwater.sinks.views import catalog
from headwater.sinks.views.catalog import Entry
from headwater.sinks.views.connection import Readers

_SHORTEST, _LONGEST = 0.001, 0.02


def looks(db: sqlite3.Connection, timeout: float | None) -> Iterator[None]:
    """Yield at once, then whenever another connection has committed, until the time is over."""
    deadline = float("inf") if timeout is None else time.monotonic() + timeout
    seen, pause = None, _SHORTEST
    while True:
        # Before the look, so that a commit during it leads to another.
        version = db.execute("PRAGMA data_version").fetchone()
        if version != seen:
            seen, pause = version, _SHORTEST
            yield
        elif time.monotonic() >= deadline:
            return
        else:
            time.sleep(max(0.0, min(pause, deadline - time.monotonic())))
            pause = min(pause * 2, _LONGEST)


def wait(readers: Readers, name: str, version: int | None, wanted: Position, timeout: float) -> None:
    """Return when a view's results include everything before a position of one of its inputs."""
    with readers.lend() as db:
        for _ in looks(db, timeout):
            entry = catalog.find(db, name, version)
            reached = _reached(entry, wanted)
            if reached.passed(wanted):
                return
    left = missing(reached, wanted)
    raise Behind(
        f'view "{name}" has not caught up within {timeout:g} seconds',
        detail=f'it has read up to "{reached}", not up to "{wanted}": {left:,} records are missing',
        hint="see whether its pipeline runs, or wait longer",
    )


def _reached(entry: Entry, wanted: Position) -> Position:
    for position in entry.positions:
        if position.topic == wanted.topic:
            return position
    if entry.positions:
        inputs = [position.topic for position in entry.positions]
        raise UsageError(
            f'view "{entry.name}" does not read topic "{wanted.topic}"',
            hint=nearest(wanted.topic, inputs) or "it reads: " + ", ".join(inputs),
        )
    return Position(wanted.topic)


def missing(reached: Position, wanted: Position) -> int:
    """Return how many records lie between two positions of a topic."""
    return sum(max(0, offset - reached.offsets.get(p, 0)) for p, offset in wanted.offsets.items())
