"""Which times and dates can be read again: those of the years 1 to 9999, as Python has them.

Arrow stores others too, and whoever reads them as Python values gets an error about another record.
Invariant: what is let in can be read.
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from headwater.schema import TIMESTAMP

REASON = "it is outside of the years 1 to 9999"
_t = pa.types
_DAYS = tuple(pa.scalar(day, pa.date32()) for day in (date.min, date.max))
_INSTANTS = tuple(pa.scalar(at.replace(tzinfo=UTC), TIMESTAMP) for at in (datetime.min, datetime.max))


def outside(column: pa.Array) -> int | None:
    """Return the index of the first time or date that could not be read, of a column that is not nested."""
    if not _t.is_temporal(column.type) or not len(column):
        return None
    first, last = (bound.cast(column.type) for bound in (_DAYS if _t.is_date(column.type) else _INSTANTS))
    ends: dict[str, Any] = pc.min_max(column)
    if not ends["min"].is_valid or (not _before(ends["min"], first) and not _before(last, ends["max"])):
        return None
    wrong = pc.or_(pc.less(column, first), pc.greater(column, last))
    return int(pc.index(pc.fill_null(wrong, False), True).as_py())


def readable(column: pa.Array) -> bool:
    """Tell whether every time and date of a column can be read, however deep."""
    kind = column.type
    if _t.is_map(kind):
        return readable(column.keys) and readable(column.items)
    if _t.is_list(kind):
        return readable(column.flatten())
    if _t.is_struct(kind):
        return all(map(readable, column.flatten()))
    return outside(column) is None


def _before(one: pa.Scalar, other: pa.Scalar) -> bool:
    return bool(pc.less(one, other).as_py())
