"""How many rows a window has had, where that decides when it is published.

Invariant: every row counts, whatever is in it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headwater.operators.aggregates.aggregate import Aggregate
from headwater.operators.event_time import Times
from headwater.operators.groups import Numbers


@dataclass(frozen=True)
class RowCount(Aggregate):
    """The number of rows."""

    def output(self, name: str, schema: pa.Schema) -> list[pa.Field]:
        """Return a column of numbers."""
        return [pa.field(name, pa.int64())]

    def state(self, name: str, schema: pa.Schema) -> list[pa.Field]:
        """Return the number so far."""
        return [pa.field(f"{name}.count", pa.int64())]

    def partial(self, rows: pa.Table, at: Times, groups: Numbers, count: int) -> list[pa.Array]:
        """Count rows."""
        return [pa.array(np.bincount(groups, minlength=count).astype(np.int64))]

    def merge(self, partials: list[pa.Array], groups: Numbers, count: int) -> list[pa.Array]:
        """Add numbers up."""
        sums = np.zeros(count, np.int64)
        np.add.at(sums, groups, partials[0].to_numpy())
        return [pa.array(sums)]

    def finish(self, partials: list[pa.Array]) -> list[pa.Array]:
        """Return the number."""
        return partials
