"""Arrow values as Python values, many at a time.

``to_pylist`` makes a scalar of each value first; through numpy a column of simple values takes a
tenth of the time.

Invariant: the values are those of ``to_pylist``, with maps as dicts.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import repeat
from typing import Any

import numpy as np
import pyarrow as pa

_t = pa.types
_EPOCH = datetime(1970, 1, 1)


def values(column: pa.Array) -> list[Any]:
    """Return the values of a column."""
    kind = column.type
    if _t.is_string(kind) or _t.is_binary(kind):
        return _listed(column)
    if _t.is_integer(kind) or _t.is_floating(kind) or _t.is_boolean(kind):
        return _with_nulls(_listed(column.fill_null(0 if kind != pa.bool_() else False)), column)
    if kind == pa.date32():
        return _with_nulls(_listed(column.cast(pa.int32()).fill_null(0).cast(kind)), column)
    if _t.is_timestamp(kind) and kind.unit == "us" and kind.tz in (None, "UTC"):
        return _with_nulls(_datetimes(column), column)
    nested: list[Any] = column.to_pylist(maps_as_pydicts="strict")
    return nested


def dicts(rows: pa.Table) -> Iterator[dict[str, Any]]:
    """Yield rows as dicts, each made when it is asked for: memory that is used again is faster."""
    columns = [values(column.combine_chunks()) for column in rows.columns]
    return map(dict, map(zip, repeat(rows.column_names), zip(*columns, strict=True)))


def _datetimes(column: pa.Array) -> list[Any]:
    told = column.cast(pa.int64()).fill_null(0).cast(pa.duration("us"))
    # Adding to an epoch with a zone takes a tenth of the time of giving each datetime its zone.
    return list(map(_EPOCH.replace(tzinfo=column.type.tz and UTC).__add__, _listed(told)))


def _listed(column: pa.Array) -> list[Any]:
    listed: list[Any] = column.to_numpy(zero_copy_only=False).tolist()
    return listed


def _with_nulls(listed: list[Any], column: pa.Array) -> list[Any]:
    if column.null_count:
        for place in np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False)).tolist():
            listed[place] = None
    return listed
