"""Many values decoded at once; one by one only as far as it takes to name those that do not fit.

Invariant: every value is a row of the batch, in its order, or has its index and its error.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from headwater.bisection import failing
from headwater.errors import RowError

Bad = tuple[int, RowError]
"""The index of a value that does not fit, and why."""
Rows = tuple[pa.RecordBatch, list[Bad]]
"""The rows that fit, and the values that do not."""


def decoded(count: int, schema: pa.Schema, parse: Callable[[int, int], pa.RecordBatch]) -> Rows:
    """Return the rows of all values that fit; ``parse`` gives those of a range, or raises ``RowError``."""
    batches: list[pa.RecordBatch] = []

    def attempt(start: int, end: int) -> RowError | None:
        try:
            batches.append(parse(start, end))
        except RowError as error:
            return error
        return None

    bad = list(failing(count, attempt))
    if not batches:
        return pa.RecordBatch.from_pylist([], schema=schema), bad
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches), bad
