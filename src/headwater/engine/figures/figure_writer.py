"""Writes down the figures of a run, and never breaks it.

Invariant: nothing that goes wrong here is raised: it is counted. A runner that another has replaced writes
no more.
"""

from __future__ import annotations

import logging
import os
import socket
import sqlite3
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

from headwater.closing import Closing
from headwater.engine.figures.figure_store import open_for_writing, transaction
from headwater.engine.figures.history import WHOLE, Point, add_points
from headwater.engine.figures.runner_report import RunFigures
from headwater.engine.figures.status import Status
from headwater.engine.home.accounting import Accounting

_log = logging.getLogger("headwater")
_BEGIN = "INSERT OR REPLACE INTO runner VALUES (1, ?, ?, ?, ?, ?, NULL, NULL)"


class FigureWriter(Closing):
    """The figures of one run, in the home of its pipeline."""

    def __init__(self, home: Path):
        self._home, self._run = home, uuid.uuid4().hex
        self._connection: sqlite3.Connection | None = None
        self._before: dict[str, Accounting] = {}
        self._began = False
        self.failures = 0
        """How often it could not be written."""
        self.replaced = False
        """Whether another runner writes now."""

    def note(self, figures: RunFigures, *, ended: bool = False) -> None:
        """Note the figures as they are now; what fails is counted."""
        if self.replaced:
            return
        try:
            self._note(figures, time.time(), ended)
        except Exception as error:  # figures must not break a run, whatever is wrong with them
            self._failed(error)

    def close(self) -> None:
        """Release the file."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _note(self, figures: RunFigures, now: float, ended: bool) -> None:
        if self._connection is None:
            self._connection = open_for_writing(self._home)
        db, points = self._connection, list(_points(figures, now, self._before))
        with transaction(db):
            if not self._began:
                who = (self._run, socket.gethostname(), os.getpid(), now, now)
                db.execute(_BEGIN, who)
            query = "UPDATE runner SET noted = ?, ended = ?, step = ? WHERE run = ?"
            found = db.execute(query, (now, now if ended else None, figures.step, self._run))
            if not found.rowcount:
                self.replaced = True
                return
            _replace_latest(db, figures)
            add_points(db, now, points)
        self._began = True
        self._before = {each.node: each.accounting for each in figures.nodes}

    def _failed(self, error: Exception) -> None:
        self.failures += 1
        if self.failures == 1:
            _log.debug("the figures of a pipeline cannot be written: %s", error)
        self.close()  # and opened anew: a file that is damaged is begun anew then


def _replace_latest(db: sqlite3.Connection, figures: RunFigures) -> None:
    """Put figures in place of those of before; of what there are none now, the last ones stay."""
    rows = figures.rows()
    parts = {part for part, _, _ in rows}
    db.executemany("DELETE FROM latest WHERE part = ?", [(part,) for part in parts])
    db.executemany("INSERT INTO latest VALUES (?, ?, ?)", rows)


def _points(figures: RunFigures, now: float, before: dict[str, Accounting]) -> Iterator[Point]:
    nodes = [_node_point(each, now, before.get(each.node, each.accounting)) for each in figures.nodes]
    inputs = [
        Point(each.name, rate=each.rate, clock_behind=_behind(each.clock, now)) for each in figures.inputs
    ]
    if nodes or inputs:
        yield from (*nodes, *inputs, _whole(nodes, inputs))


def _node_point(status: Status, now: float, before: Accounting) -> Point:
    return Point(
        status.node,
        status.rate,
        status.seconds if status.batches else None,
        status.lag,
        _behind(status.clock, now),
        max(0, status.accounting.late - before.late),
        max(0, status.accounting.dead - before.dead),
        status.state_bytes,
    )


def _whole(nodes: list[Point], inputs: list[Point]) -> Point:
    """Return the point of the pipeline: what comes in from outside, and all nodes together."""
    return Point(
        WHOLE,
        sum(each.rate or 0.0 for each in inputs),
        max((each.batch_seconds for each in nodes if each.batch_seconds is not None), default=None),
        sum(each.lag or 0 for each in nodes),
        max((each.clock_behind for each in nodes if each.clock_behind is not None), default=None),
        sum(each.late or 0 for each in nodes),
        sum(each.dead or 0 for each in nodes),
        sum(each.state_bytes or 0 for each in nodes),
    )


def _behind(clock: int | None, now: float) -> float | None:
    return None if clock is None else round(now - clock / 1e6, 3)
