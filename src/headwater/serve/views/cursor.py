"""Cursors: where a page ended, as opaque text that the next request hands back.

A cursor names the last row by its place in the order, not by a number of rows, so that rows that come and
go meanwhile neither repeat nor hide others. Invariant: a cursor goes on in the scan that it was made in: the
same view, order and range; for any other it is refused.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Sequence
from typing import Any

import orjson
import pyarrow as pa

from headwater.errors import HeadwaterError, UsageError
from headwater.values import jsonl, jsonl_columns
from headwater.values.columns import Misfit
from headwater.values.keyed import KeyedSchema
from headwater.views import ViewQuery

_MARK = 12
"""Bytes that tell which scan a cursor is of."""
_WRONG = (Misfit, HeadwaterError, ValueError, TypeError, KeyError, OverflowError, pa.ArrowException)


def after_last(batch: pa.RecordBatch, query: ViewQuery, keyed: KeyedSchema) -> str:
    """Return the cursor of the page whose last row a batch has."""
    last = batch.slice(len(batch) - 1)
    texts = [jsonl.text(last.column(name))[0].as_py() for name in query.order_columns(keyed)]
    values = "[" + ",".join("null" if text is None else text for text in texts) + "]"
    return base64.urlsafe_b64encode(_mark(query, keyed) + values.encode()).rstrip(b"=").decode()


def values_of(cursor: str, query: ViewQuery, keyed: KeyedSchema) -> tuple[Any, ...]:
    """Return what the columns of the order have in the row that a cursor names."""
    try:
        data = base64.b64decode(cursor.encode() + b"=" * (-len(cursor) % 4), b"-_", validate=True)
        if data[:_MARK] != _mark(query, keyed):
            raise UsageError("the cursor is of another scan", hint="ask for the same view, order and range")
        names = query.order_columns(keyed)
        return _values(orjson.loads(data[_MARK:]), [keyed.schema.field(name) for name in names])
    except UsageError:
        raise
    except (binascii.Error, *_WRONG):
        raise UsageError("the cursor cannot be read", hint="take what the page before has as next") from None


def _values(listed: list[Any], fields: Sequence[pa.Field]) -> tuple[Any, ...]:
    return tuple(
        None if value is None else jsonl_columns.column([value], field.type)[0].as_py()
        for value, field in zip(listed, fields, strict=True)
    )


def _mark(query: ViewQuery, keyed: KeyedSchema) -> bytes:
    facts = (keyed.what, query.prefix, query.start, query.end, query.order, query.descending, keyed.key)
    return hashlib.sha256(repr(facts).encode()).digest()[:_MARK]
