"""Windows on their way out: partial results finished, with how often they were published before.

Invariant: of two results of one window the later has the higher revision.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headwater.operators.event_time import NEVER, Times
from headwater.operators.groups import Flags, Numbers
from headwater.operators.memory.entries import Entries, Merge, arranged, spans, spread
from headwater.operators.memory.publications import PublicationCounts
from headwater.operators.memory.sorted_runs import SortedRuns
from headwater.operators.windows.grid import Grid
from headwater.operators.windows.ranges import over
from headwater.operators.windows.windowing import Windowing

Beside = Callable[[pa.Table, Times, Numbers], pa.Table]
"""Adds columns to rows out, given the starts of their windows and the numbers of their keys."""


@dataclass(frozen=True)
class Publishable:
    """Windows to publish, by start and number of the key, and whether they are complete."""

    windows: Entries
    complete: bool


def ready(parts: Entries, starts: Times, keys: Numbers, size: int, merge: Merge) -> Entries:
    """Merge the parts, by time and number of the key, of windows; those without any are left out."""
    places = arranged(parts.minor, parts.major)
    by_key = Entries(parts.minor[places], parts.major[places], parts.rows.take(pa.array(places)))
    low, high = spans(by_key, keys, starts, starts + size)
    if (empty := low >= high).any():
        starts, keys, low, high = (each[~empty] for each in (starts, keys, low, high))
    return Entries(starts, keys, over(by_key, low, high, merge))


def merge_panes(panes: SortedRuns, starts: Times, keys: Numbers, grid: Grid, merge: Merge) -> Entries:
    """Merge windows from the panes that are held; those without rows are left out."""
    if not len(starts):
        return panes.between(0, 0)
    first, last = int(starts.min()), int(starts.max()) + grid.size
    low, high, of = _covered(starts, keys, grid)
    # Whichever looks at less: all panes of that time, or each that a window of some key may have.
    if panes.count(first, last) <= (high - low).sum():
        return ready(panes.between(first, last), starts, keys, grid.size, merge)
    lead, then = spread(low, high) * grid.width + grid.offset, np.repeat(of, high - low)
    return ready(panes.within(lead, then, then + 1), starts, keys, grid.size, merge)


def _covered(starts: Times, keys: Numbers, grid: Grid) -> tuple[Numbers, Numbers, Numbers]:
    """Return from which pane to which windows reach, each pane of a key once, and the keys."""
    places = arranged(keys, starts)
    starts, keys = starts[places], keys[places]
    reached = np.where(keys[1:] == keys[:-1], starts[:-1] + grid.size, NEVER)
    low = np.maximum(starts, np.append(NEVER, reached))
    return (low - grid.offset) // grid.width, (starts + grid.size - grid.offset) // grid.width, keys


def counts(rows: pa.Table) -> Numbers:
    """Return how many rows partial results are of, where that is counted after the aggregates."""
    found: Numbers = rows.column(-1).to_numpy()
    return found


def crowded(windows: pa.Table, new: Numbers, every: int) -> Flags:
    """Tell which windows have passed a multiple of a number of rows, with some that are new."""
    now = counts(windows)
    return now // every > (now - new) // every


def publish(
    windowing: Windowing,
    publications: PublicationCounts,
    results: list[Publishable],
    size: int,
    schema: pa.Schema,
    beside: Beside = lambda out, starts, keys: out,
) -> pa.Table:
    """Return rows out, of a schema and what is put beside it, and count the publications."""
    results = [result for result in results if len(result.windows)]
    if not results:
        nothing, out = np.empty(0, np.int64), schema.empty_table()
        return beside(out, nothing, nothing)
    starts = np.concatenate([result.windows.major for result in results])
    keys = np.concatenate([result.windows.minor for result in results])
    rows = pa.concat_tables([result.windows.rows for result in results]).combine_chunks()
    complete = np.concatenate([np.full(len(result.windows), result.complete) for result in results])
    revision = publications.of(starts, keys)
    status = [pa.array(revision.astype(np.int32)), pa.array(complete)]
    out = pa.Table.from_arrays(windowing.results(rows, starts, starts + size, status), schema=schema)
    publications.publish(starts, keys)
    return windowing.arranged(beside(out, starts, keys))
