"""When the last event of a window was, where that decides how far the window reaches.

Invariant: every row counts, whatever is in it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headwater.operators.aggregates.aggregate import Aggregate
from headwater.operators.event_time import NEVER, Times
from headwater.operators.groups import Numbers


@dataclass(frozen=True)
class LastTime(Aggregate):
    """The event time of the last row."""

    def output(self, name: str, schema: pa.Schema) -> list[pa.Field]:
        """Return a column of microseconds."""
        return [pa.field(name, pa.int64())]

    def state(self, name: str, schema: pa.Schema) -> list[pa.Field]:
        """Return the last time so far."""
        return [pa.field(f"{name}.last", pa.int64())]

    def partial(self, rows: pa.Table, at: Times, groups: Numbers, count: int) -> list[pa.Array]:
        """Find the last time of each group."""
        return self.merge([pa.array(at)], groups, count)

    def merge(self, partials: list[pa.Array], groups: Numbers, count: int) -> list[pa.Array]:
        """Find the last of several times."""
        last = np.full(count, NEVER)
        np.maximum.at(last, groups, partials[0].to_numpy())
        return [pa.array(last)]

    def finish(self, partials: list[pa.Array]) -> list[pa.Array]:
        """Return the time."""
        return partials
