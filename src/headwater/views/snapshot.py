"""The rows of a view with the number of the change up to which they are: where to follow them from.

Invariant: rows and number are of one moment. Who applies the changes after the number to the rows has the
view as it is, with nothing missing and nothing that comes twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa


@dataclass(frozen=True)
class ViewSnapshot:
    """Rows of one moment. The rows can be read while the ``with`` block that it is from lasts."""

    sequence: int
    """The number of the newest change that the rows include; go on with ``changes(since=sequence)``."""
    version: int
    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]
