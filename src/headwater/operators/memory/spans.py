"""What ``dedup`` remembers: for each key the times of its rows, in spans of time as long as ``within``.

Rows of a key that were passed on are at least ``within`` apart, so a span holds at most one of them,
and only the span before and the one after can hold another that is near. So a row is decided by three looks,
made for all distinct keys and spans of a step at once; and a span is forgotten as a whole.

Invariant: a key has at most one time in a span.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from headwater.operators.event_time import FOREVER, NEVER, Times
from headwater.operators.groups import Numbers
from headwater.operators.memory.entries import Entries, newest
from headwater.operators.memory.slots import by_minor
from headwater.operators.memory.sorted_runs import SortedRuns

_TIME = pa.schema([("at", pa.int64())])


class Spans:
    """Times by span and number of the key; the number of a time's span is the time divided by ``width``."""

    def __init__(self, width: int):
        self.width = width
        self.runs = SortedRuns(_TIME.empty_table(), newest, slots=by_minor)

    def __len__(self) -> int:
        return len(self.runs)

    def add(self, keys: Numbers, at: Times) -> None:
        """Remember a time of each key."""
        self.runs.add(Entries(at // self.width, keys, pa.table([pa.array(at)], schema=_TIME)))

    def free(self, keys: Numbers, numbers: Numbers) -> tuple[Times, Times]:
        """Return for each key and span the first and the last time that is not near a remembered one.

        The first is after the last where no time of the span is.
        """
        beside = np.concatenate([numbers - 1, numbers, numbers + 1])
        before, here, after = self._times(beside, np.tile(keys, 3)).reshape(3, -1)
        first = np.where(before == NEVER, NEVER, before + self.width)
        last = np.where(after == NEVER, FOREVER, after - self.width)
        return np.where(here == NEVER, first, FOREVER), last

    def drop(self, before: int) -> None:
        """Forget the spans that lie wholly before a time."""
        self.runs.drop(before // self.width)

    def end(self) -> int | None:
        """Return the end of the oldest span: the first time after it."""
        oldest = self.runs.next(NEVER)
        return None if oldest is None else (oldest + 1) * self.width

    def keys(self) -> Numbers:
        """Return the numbers of keys of which a time is remembered."""
        return np.unique(self.runs.minors())

    def _times(self, spans: Numbers, keys: Numbers) -> Times:
        return self.runs.find(spans, keys).numbers("at", NEVER)
