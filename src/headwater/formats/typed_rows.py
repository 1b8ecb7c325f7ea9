"""Rows of Python values, as a format's library reads them, in the columns of a topic.

A reader knows fields by name: one that a row lacks is null, one that the topic lacks is left out. So records
written with older and newer schemas are rows of one batch. Invariant: a value is kept exactly, or its row
is refused; a number is never taken for a time.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from decimal import Decimal
from typing import Any, ClassVar
from uuid import UUID

import pyarrow as pa

from headwater.errors import RowError
from headwater.schema import is_variant, type_name
from headwater.topic import Topic
from headwater.values import bulk, columns, free_json, nested
from headwater.values.bulk import Rows
from headwater.values.columns import REFUSALS, Form, Misfit, only
from headwater.values.python_values import FORM as PYTHON

_t = pa.types


class Nanoseconds(int):
    """Nanoseconds since 1970, which their schema says are a time; a BIGINT column has them as they are."""

    zone: ClassVar[tzinfo | None] = UTC

    def time(self) -> datetime:
        """Return the time, if microseconds can tell it."""
        micros, rest = divmod(int(self), 1000)
        if rest:
            raise Misfit("its nanoseconds would be cut off")
        return datetime(1970, 1, 1, tzinfo=self.zone) + timedelta(microseconds=micros)


class LocalNanoseconds(Nanoseconds):
    """The same of a time without a zone."""

    zone = None


@dataclass(frozen=True)
class RowForm:
    """How a library hands over values."""

    columns: Form
    json: Callable[[Any], str]
    """Writes a value as JSON, for a VARIANT column."""


def fit(rows: Sequence[Mapping[str, Any]], topic: Topic, form: RowForm) -> Rows:
    """Return the rows that fit the topic, and the index and error of each that does not."""
    return bulk.decoded(len(rows), topic.schema, lambda start, end: _batch(rows[start:end], topic, form))


def check_nulls(batch: pa.RecordBatch, topic: Topic) -> None:
    """Refuse rows that lack a column which must have a value."""
    for field in topic.schema:
        if batch.column(field.name).null_count and (not field.nullable or field.name in topic.key):
            what = "is part of the key" if field.name in topic.key else "is NOT NULL"
            raise RowError(f'column "{field.name}" of topic "{topic.name}" {what}', detail="the row lacks it")


def misfit(field: pa.Field, topic: Topic, detail: str | None, hint: str | None = None) -> RowError:
    """Return the error for a value that is not of its column's type."""
    what = f'row does not fit topic "{topic.name}": column "{field.name}" is {type_name(field)}'
    return RowError(what, detail=detail, hint=hint)


def _batch(rows: Sequence[Mapping[str, Any]], topic: Topic, form: RowForm) -> pa.RecordBatch:
    made = [_column(rows, field, topic, form) for field in topic.schema]
    batch = pa.RecordBatch.from_arrays(made, schema=topic.schema)
    check_nulls(batch, topic)
    for field in topic.schema:
        nested.check_within(batch.column(field.name), field, topic)
    return batch


def _column(rows: Sequence[Mapping[str, Any]], field: pa.Field, topic: Topic, form: RowForm) -> pa.Array:
    values: list[Any] = []
    try:
        values = [row.get(field.name) for row in rows]
        if is_variant(field):
            texts = [None if value is None else form.json(value) for value in values]
            return pa.array(texts, pa.string())
        return columns.column(values, field.type, form.columns, field.name)
    except (Misfit, *REFUSALS) as error:
        shown = f"got {values[0]!r:.80}" if len(values) == 1 else ""
        reason = str(error) if isinstance(error, Misfit) else ""
        raise misfit(
            field, topic, ": ".join(filter(None, (shown, reason))) or None, _hint(field.type, values)
        ) from None


def _hint(kind: pa.DataType, values: Sequence[Any]) -> str | None:
    if _t.is_timestamp(kind) and any(isinstance(value, Nanoseconds) for value in values):
        return "declare the column as BIGINT to have the nanoseconds"
    if _t.is_timestamp(kind) and any(type(value) is int for value in values):
        return "a number does not say in which unit it counts: declare the column as BIGINT"
    return None


def _leaf(values: list[Any], kind: pa.DataType) -> pa.Array:
    if _t.is_timestamp(kind):
        values = [value.time() if isinstance(value, Nanoseconds) else value for value in values]
        only(values, datetime)  # Python's own form takes numbers for microseconds
    elif _t.is_date(kind):
        only(values, date)
    elif _t.is_string(kind) and UUID in set(map(type, values)):
        values = [str(value) if isinstance(value, UUID) else value for value in values]
    return PYTHON.leaf(values, kind)


def _struct(value: Any) -> Mapping[str, Any]:
    only([value], dict)
    return value  # type: ignore[no-any-return]


def _pairs(value: Any, _: pa.DataType) -> Sequence[tuple[Any, Any]]:
    return list(_struct(value).items())


def _items(value: Any) -> Sequence[Any]:
    only([value], list)
    return value  # type: ignore[no-any-return]


def json_text(value: Any) -> str:
    """Return a value as JSON: times as ISO 8601, decimals as text, bytes as base64, as Headwater writes them.

    >>> json_text({"at": datetime(2026, 1, 2, tzinfo=UTC), "b": b"hi"})
    '{"at":"2026-01-02T00:00:00.000000Z","b":"aGk="}'
    """
    return free_json.text(_json_ready(value))


def _json_ready(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _json_ready(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_json_ready(item) for item in value]
    if isinstance(value, datetime):
        written = value.astimezone(UTC) if value.tzinfo else value
        return written.replace(tzinfo=None).isoformat(timespec="microseconds") + "Z" * bool(value.tzinfo)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return str(value) if isinstance(value, date | Decimal | UUID) else value


DICTS = RowForm(Form(_leaf, _struct, _pairs, _items, strict=False), json_text)
"""Structs and maps as dicts, arrays as lists."""
