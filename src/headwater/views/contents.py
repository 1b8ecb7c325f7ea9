"""What a table that is read as a view holds, for comparing it with what it should hold.

Invariant: rows and batch number are of one moment, though the two are read one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain

import pyarrow as pa

from headwater.errors import UsageError
from headwater.sinks.sink import Contents
from headwater.views.reading import Lend
from headwater.views.view import View


def contents_of(name: str, lend: Lend, close: Callable[[], None]) -> Contents:
    """Return what a view holds; nothing, if there is none. ``close`` is called when the rows are read."""
    try:
        view = View(name, lend)
    except UsageError:  # it was never made, or is gone
        close()
        return Contents()
    while True:
        batch, rows = view.batch(), iter(view.scan())
        first = list(_first(rows))  # from then on it is of one moment
        if view.batch() == batch:
            return Contents(batch, _closing(chain(first, rows), close))


def _first(rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in rows:
        yield batch
        return


def _closing(rows: Iterator[pa.RecordBatch], close: Callable[[], None]) -> Iterator[pa.RecordBatch]:
    try:
        yield from rows
    finally:
        close()
