"""Rows in order of time, from which the oldest can be taken without looking at the others.

They lie in a few runs, each sorted by time; a new run is merged with its neighbour while that is not
much larger, so that a row is moved a logarithmic number of times and there are few runs to ask.

Invariant: what has been dropped is held in memory no longer than as much again is kept beside it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headwater.operators.event_time import Times
from headwater.operators.order import stable


@dataclass(frozen=True)
class _Run:
    """Rows sorted by time, the last ones of a table that had ``held`` rows."""

    rows: pa.Table
    at: Times
    held: int

    def after(self, cut: int) -> _Run:
        left = len(self.at) - cut
        if 2 * left > self.held:
            return _Run(self.rows.slice(cut), self.at[cut:], self.held)
        return _Run(self.rows.take(pa.array(np.arange(cut, len(self.at)))), self.at[cut:].copy(), left)


class Timeline:
    """Rows that leave in the order of their times."""

    def __init__(self, schema: pa.Schema):
        self._empty = schema.empty_table()
        self._runs: list[_Run] = []

    def __len__(self) -> int:
        return sum(len(run.at) for run in self._runs)

    def add(self, rows: pa.Table, at: Times) -> None:
        """Add rows with their times, none of them unknown."""
        if not len(at):
            return
        self._runs.append(_sorted(rows, at))
        while len(self._runs) > 1 and len(self._runs[-2].at) <= 2 * len(self._runs[-1].at):
            newer, older = self._runs.pop(), self._runs.pop()
            both = pa.concat_tables([older.rows, newer.rows])
            self._runs.append(_sorted(both, np.concatenate([older.at, newer.at])))

    def until(self, before: int) -> pa.Table:
        """Return the rows from before a time, in no order, and keep them."""
        cuts = [(run, int(np.searchsorted(run.at, before))) for run in self._runs]
        return self._joined([run.rows.slice(0, cut) for run, cut in cuts if cut])

    def drop(self, before: int) -> None:
        """Forget the rows from before a time."""
        cuts = [(run, int(np.searchsorted(run.at, before))) for run in self._runs]
        self._runs = [run.after(cut) if cut else run for run, cut in cuts if cut < len(run.at)]

    def first(self) -> int | None:
        """Return the earliest time."""
        return min((int(run.at[0]) for run in self._runs), default=None)

    def rows(self) -> pa.Table:
        """Return all rows."""
        return self._joined([run.rows for run in self._runs])

    def mapped(self, change: Callable[[pa.Table], pa.Table]) -> Timeline:
        """Return a timeline of other rows in place of these, at the same times."""
        changed = Timeline(self._empty.schema)
        changed._runs = [_Run(change(run.rows), run.at.copy(), len(run.at)) for run in self._runs]
        return changed

    def _joined(self, tables: list[pa.Table]) -> pa.Table:
        return pa.concat_tables(tables).combine_chunks() if tables else self._empty


def _sorted(rows: pa.Table, at: Times) -> _Run:
    places = stable(at)
    # Taking copies: a run must not keep alive what else the rows' buffers hold.
    return _Run(rows.combine_chunks().take(pa.array(places)), at[places], len(at))
