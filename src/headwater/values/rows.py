"""From what users hand over (rows, pandas, Arrow) to record batches of a topic's schema.

Invariant: a batch returned from here fits its topic in every respect; the backends check nothing
again. The conversion is vectorised: rows are looked at one by one only to name a bad one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from types import MappingProxyType
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from headwater import record
from headwater.bisection import failing
from headwater.errors import RecordTooLarge, RowError, UsageError, nearest
from headwater.schema import evolve, is_variant, type_name
from headwater.topic import Topic
from headwater.values import columns, free_json, nested
from headwater.values.cast import cast
from headwater.values.columns import REFUSALS, Misfit, UnknownField
from headwater.values.nested import unknown_field
from headwater.values.python_values import FORM
from headwater.values.sent_rows import Row, shown

Extras = Mapping[str, pa.Array]
"""Metadata columns that only some records have."""
_NO_EXTRAS: Extras = MappingProxyType({})


def from_rows(rows: Sequence[Row], topic: Topic, extras: Extras = _NO_EXTRAS) -> pa.RecordBatch:
    """Convert rows, all or none; the error names the first bad one.

    Where ``_deleted`` of the ``extras`` is true the row is a tombstone and needs only its key.
    """
    if any(is_variant(field) for field in topic.schema):
        rows = [_with_json_text(row, topic, number) for number, row in enumerate(rows)]
    rows = _mappings(rows)
    for name in set(chain.from_iterable(rows)).difference(topic.schema.names):
        raise unknown_column(str(name), topic)
    made = [_column([row.get(field.name) for row in rows], field, topic) for field in topic.schema]
    return _checked(_batch(made, topic), topic, extras)


def from_columns(values: Sequence[list[Any]], topic: Topic) -> pa.RecordBatch:
    """Convert rows of which the values of each column are given, in the schema's order."""
    count = len(values[0])
    made = [_column(column, field, topic) for column, field in zip(values, topic.schema, strict=False)]
    made += [pa.nulls(count, field.type) for field in list(topic.schema)[len(made) :]]  # added since
    return _checked(_batch(made, topic), topic)


def from_data(data: Any, topic: Topic) -> list[pa.RecordBatch]:
    """Convert an Arrow table or batch, a pandas DataFrame, or a sequence of rows."""
    if isinstance(data, pa.RecordBatch):
        return [from_arrow(data, topic)]
    if isinstance(data, pa.Table):
        batches = data.combine_chunks().to_batches() or [_empty(data.schema)]
        return [from_arrow(batch, topic) for batch in batches]
    if not _is_series(data) and (hasattr(data, "__arrow_c_stream__") or _is_pandas(data)):
        return from_data(_table(data, topic), topic)
    if isinstance(data, Sequence) and not isinstance(data, str | bytes | bytearray | memoryview):
        return [from_rows(data, topic)] if data else []
    raise UsageError(
        f"a batch cannot be a {type(data).__name__}",
        hint="pass an Arrow table or record batch, a pandas DataFrame, or a list of dicts",
    )


def from_arrow(batch: pa.RecordBatch, topic: Topic, extras: Extras = _NO_EXTRAS) -> pa.RecordBatch:
    """Check an Arrow batch against the topic, casting columns where no value changes.

    ``extras`` as for ``from_rows``.
    """
    schema = topic.schema
    names = batch.schema.names
    for number, name in enumerate(names):
        if name not in schema.names:
            raise unknown_column(name, topic)
        if name in names[:number]:
            raise RowError(f'column "{name}" appears twice in a batch for topic "{topic.name}"')
    if not batch.schema.equals(schema):
        batch = _cast(evolve(batch, _partial(batch, schema)), topic)
    try:
        batch.validate(full=True)
    except pa.ArrowInvalid as error:
        raise RowError(f'batch does not fit topic "{topic.name}"', detail=_first_line(error)) from None
    _check_json(batch, topic)
    return _checked(batch.replace_schema_metadata(None), topic, extras)


def oversized(batch: pa.RecordBatch, limit: int = record.MAX_BYTES) -> int | None:
    """Return the first row over the size limit; looks only into slices that are over it."""

    def over(start: int, end: int) -> bool | None:
        return batch.slice(start, end - start).nbytes > limit or None

    return next((row for row, _ in failing(len(batch), over)), None)


def unknown_column(name: str, topic: Topic) -> RowError:
    """Return the error for a column the topic lacks."""
    known = topic.schema.names
    hint = nearest(name, known) or "its columns: " + ", ".join(known)
    return RowError(f'topic "{topic.name}" has no column "{name}"', hint=hint, column=name)


def _checked(batch: pa.RecordBatch, topic: Topic, extras: Extras = _NO_EXTRAS) -> pa.RecordBatch:
    deleted = extras.get(record.DELETED)
    for name in topic.key:
        if batch.column(name).null_count:
            raise RowError(
                f'key column "{name}" of topic "{topic.name}" is null',
                row=_first_null(batch.column(name)),
                column=name,
                hint="every record needs its key; leave the row out or fill the column",
            )
    for field in topic.schema:
        nested.check_within(batch.column(field.name), field, topic)
        if not field.nullable and batch.column(field.name).null_count:
            row = _first_null(batch.column(field.name), deleted)
            if row >= 0:
                raise RowError(
                    f'column "{field.name}" of topic "{topic.name}" is NOT NULL',
                    detail="it has no value",
                    row=row,
                    column=field.name,
                )
    _check_size(batch, topic, extras.get("_headers"))
    return batch


def _check_size(batch: pa.RecordBatch, topic: Topic, headers: pa.Array | None) -> None:
    """Refuse a record that is too large, its headers counted."""
    whole = batch if headers is None else batch.append_column("_headers", headers)
    large, limit = _too_large(whole), record.MAX_BYTES
    if large is not None:
        size, own = whole.slice(large, 1).nbytes, batch.slice(large, 1).nbytes
        what = f"it has {size:,} bytes" + (f", {size - own:,} of them in its headers" if size > own else "")
        raise RecordTooLarge(
            f'record is too large for topic "{topic.name}"',
            detail=f"{what}, the limit is {limit:,}",
            row=large,
            hint="store the large part elsewhere and send a reference to it",
        )


def _too_large(batch: pa.RecordBatch) -> int | None:
    """Return the first row that is too large; a dead letter may be so by its own headers."""
    if oversized(batch) is None or "_headers" not in batch.schema.names:
        return oversized(batch)
    letters = [record.ORIGIN in dict(each or ()) for each in batch.column("_headers").to_pylist()]
    limits = {False: record.MAX_BYTES, True: record.MAX_BYTES + record.LETTER_BYTES}
    rows = (row for row, letter in enumerate(letters) if batch.slice(row, 1).nbytes > limits[letter])
    return next(rows, None)


def _check_json(batch: pa.RecordBatch, topic: Topic) -> None:
    """Refuse text that is not JSON in a VARIANT column."""
    for field in topic.schema:
        if is_variant(field):
            # One by one: there is no bulk check of JSON without parsing it, and that is what this does.
            for row, text in enumerate(batch.column(field.name).to_pylist()):
                reason = None if text is None else _not_json(text)
                if reason is not None:
                    raise RowError(
                        f'column "{field.name}" of topic "{topic.name}" is VARIANT, and the text is not JSON',
                        detail=f"got {text[:80]!r}: {reason}",
                        row=row,
                        column=field.name,
                    )


def _not_json(text: str) -> str | None:
    try:
        parsed = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        return str(error)
    return "it is nested too deeply" if free_json.too_deep(text.encode(), parsed) else None


def _batch(columns: list[pa.Array], topic: Topic) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(columns, schema=topic.schema)


def _mappings(rows: Sequence[Any]) -> Sequence[Row]:
    if set(map(type, rows)) <= {dict}:
        return rows
    for number, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise RowError(
                f"a row is a {type(row).__name__}, not a mapping of columns to values",
                hint="pass a dict for each row",
                row=number,
            )
    return [dict(row) for row in rows]


def _column(values: list[Any], field: pa.Field, topic: Topic) -> pa.Array:
    try:
        return columns.column(values, field.type, FORM, field.name)
    except (Misfit, *REFUSALS):
        raise _first_misfit(values, field, topic) from None


def _first_misfit(values: list[Any], field: pa.Field, topic: Topic) -> RowError:
    """Return the error of the first value that does not fit, found by bisection."""
    together = Misfit("the values do not fit together")
    bad = failing(len(values), lambda start, end: _refusal(values[start:end], field))
    row, error = next(bad, (len(values) - 1, together))
    if isinstance(error, UnknownField):
        return unknown_field(error.path, error.name, error.kind, topic, row)
    reason = "it is nested too deeply" if isinstance(error, RecursionError) else _first_line(error)
    return RowError(
        f'row does not fit topic "{topic.name}": column "{field.name}" is {type_name(field)}',
        detail=f"got {shown(values[row])}: {reason}",
        row=row,
        column=field.name,
    )


def _refusal(values: list[Any], field: pa.Field) -> Exception | None:
    try:
        columns.column(values, field.type, FORM, field.name)
    except (Misfit, *REFUSALS) as error:
        return error
    return None


def _with_json_text(row: Any, topic: Topic, number: int) -> Any:
    """Replace free JSON values by their text; a topic declared as "JSON" takes any value as a row."""
    fields = [field for field in topic.schema if is_variant(field)]
    if topic.schema.names == ["value"] and not (isinstance(row, Mapping) and list(row) == ["value"]):
        return {"value": _json_text(row, "value", topic, number)}
    if not isinstance(row, Mapping):
        return row
    texts = {
        f.name: _json_text(row[f.name], f.name, topic, number) for f in fields if row.get(f.name) is not None
    }
    return {**row, **texts}


def _json_text(value: Any, name: str, topic: Topic, number: int) -> str:
    try:
        return free_json.text(value)
    except (Misfit, RecursionError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise RowError(
            f'value is not JSON, for topic "{topic.name}"',
            detail=f'column "{name}", got {shown(value)}: {reason}',
            row=number,
        ) from None


def _table(data: Any, topic: Topic) -> pa.Table:
    try:
        if _is_pandas(data):
            columns = topic.schema.names
            kept = [name for name in data.index.names if name in columns and name not in data.columns]
            return pa.Table.from_pandas(data.reset_index(level=kept) if kept else data, preserve_index=False)
        return pa.table(data)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise RowError(f'data does not fit topic "{topic.name}"', detail=_first_line(error)) from None


def _is_pandas(data: Any) -> bool:
    return type(data).__module__.startswith("pandas")


def _is_series(data: Any) -> bool:
    """Tell whether a pandas object is no DataFrame: one column has no name to go by."""
    return _is_pandas(data) and not hasattr(data, "columns")


def _empty(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in schema], schema=schema)


def _partial(batch: pa.RecordBatch, schema: pa.Schema) -> pa.Schema:
    """Return the topic's column names with the batch's own types where it has them."""
    have = batch.schema
    return pa.schema([have.field(f.name) if f.name in have.names else f.with_nullable(True) for f in schema])


def _cast(batch: pa.RecordBatch, topic: Topic) -> pa.RecordBatch:
    made = []
    for field in topic.schema:
        column = batch.column(field.name)
        try:
            made.append(cast(column, field.type, field.name, topic))
        except (Misfit, pa.ArrowException, NotImplementedError) as error:
            raise RowError(
                f'column "{field.name}" of topic "{topic.name}" is {type_name(field)}, not {column.type}',
                detail=_first_line(error),
                column=field.name,
            ) from None
    return _batch(made, topic)


def _first_null(column: pa.Array, deleted: pa.Array | None = None) -> int:
    missing = pc.is_null(column)
    if deleted is not None:
        missing = pc.and_not(missing, deleted)
    return int(pc.index(missing, True).as_py())


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
