"""Rows as JSON text and back, a column at a time: what Kafka stores and what the CLI reads.

A row is one JSON object without the columns that are null. Times are ISO 8601 (with ``Z`` unless
``TIMESTAMP_NTZ``), DECIMAL is text, BINARY is base64, MAP an object, VARIANT the JSON itself; NaN
and infinities, which JSON lacks, are text. A topic of one VARIANT column has the free value itself
instead of an object.

Invariant: ``decode(encode(batch, topic), topic)`` returns the batch and no errors.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from headwater.schema import is_variant
from headwater.topic import Topic
from headwater.values import bulk, jsonl_columns
from headwater.values.bulk import Rows


def encode(batch: pa.RecordBatch, topic: Topic) -> list[bytes]:
    """Return each row as JSON."""
    if topic.free:
        return list(pc.fill_null(batch.column(0), "null").cast(pa.binary()).to_pylist())
    columns = [(field, _field_text(batch.column(field.name), field)) for field in topic.schema]
    return list(_objects(columns).cast(pa.binary()).to_pylist())


def decode(values: Sequence[bytes], topic: Topic, *, strict: bool = False) -> Rows:
    """Return the rows that fit the topic, and the index and error of each value that does not.

    ``strict`` refuses columns the topic lacks, which are otherwise left out; a record's metadata is
    left out in any case, except ``_deleted``.
    """
    batch = None if topic.free else jsonl_columns.parse_fast(values, topic, strict)
    if batch is not None:
        return batch, []
    return bulk.decoded(
        len(values),
        topic.schema,
        lambda start, end: jsonl_columns.parse(values[start:end], topic, strict),
    )


def _join(*parts: pa.Array | str) -> pa.Array:
    return pc.binary_join_element_wise(*parts, "")


def _field_text(column: pa.Array, field: pa.Field) -> pa.Array:
    return column if is_variant(field) else text(column)


def text(column: pa.Array) -> pa.Array:
    """Return each value as JSON text, null where it is null."""
    kind = column.type
    if pa.types.is_string(kind):
        return _quoted(column)
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return column.cast(pa.string())
    if pa.types.is_floating(kind):
        return _float_text(column)
    if pa.types.is_map(kind):
        return _map_text(column)
    if pa.types.is_list(kind):
        texts = pc.fill_null(text(column.flatten()), "null")
        return _join("[", _elements(column, texts), "]")
    if pa.types.is_struct(kind):
        return _struct_text(column)
    return _join('"', _simple_text(column), '"')


def _simple_text(column: pa.Array) -> pa.Array:
    """Return the text of values that need quotes but no escapes."""
    if pa.types.is_binary(column.type):
        encoded = [None if v is None else base64.b64encode(v).decode() for v in column.to_pylist()]
        return pa.array(encoded, pa.string())
    if pa.types.is_timestamp(column.type):
        return pc.replace_substring(column.cast(pa.string()), " ", "T", max_replacements=1)
    return column.cast(pa.string())


def _quoted(column: pa.Array) -> pa.Array:
    plain = _join('"', column, '"')
    special = pc.match_substring_regex(column, r'["\\\x00-\x1f]')
    if not pc.any(special).as_py():
        return plain
    escaped = [orjson.dumps(value).decode() for value in column.filter(special).to_pylist()]
    return pc.replace_with_mask(plain, pc.fill_null(special, False), pa.array(escaped, pa.string()))


def _float_text(column: pa.Array) -> pa.Array:
    texts = column.cast(pa.string())
    texts = pc.if_else(pc.equal(texts, "-0"), "-0.0", texts)  # as an integer it would lose its sign
    if pc.all(pc.is_finite(column)).as_py() is not False:
        return texts
    named = pc.case_when(
        pc.make_struct(pc.is_nan(column), pc.equal(column, float("inf")), pc.equal(column, float("-inf"))),
        '"NaN"', '"Infinity"', '"-Infinity"', texts,
    )  # fmt: skip
    return pc.if_else(pc.is_null(column), pa.scalar(None, pa.string()), named)


def _map_text(column: pa.MapArray) -> pa.Array:
    kind = column.type
    entry = pa.struct([pa.field("key", kind.key_type, False), pa.field("value", kind.item_type)])
    pairs = column.cast(pa.list_(entry))
    keys, items = pairs.flatten().flatten()
    names = _quoted(keys if pa.types.is_string(keys.type) else _bare(keys))
    members = _join(names, ":", pc.fill_null(text(items), "null"))
    return _join("{", _elements(pairs, members), "}")


def _bare(keys: pa.Array) -> pa.Array:
    """Return map keys as text without quotes: the name of an object's member is a string anyway."""
    if pa.types.is_floating(keys.type) or pa.types.is_boolean(keys.type) or pa.types.is_integer(keys.type):
        return keys.cast(pa.string())
    return text(keys) if pa.types.is_nested(keys.type) else _simple_text(keys)


def _struct_text(column: pa.StructArray) -> pa.Array:
    children = [(field, text(child)) for field, child in zip(column.type, column.flatten(), strict=True)]
    return pc.if_else(column.is_valid(), _objects(children), pa.scalar(None, pa.string()))


def _objects(columns: Sequence[tuple[pa.Field, pa.Array]]) -> pa.Array:
    """Return one object per row, without the members that are null."""
    # Each member brings its comma, so that one left out leaves none; the first becomes the brace.
    members = [_join("," + orjson.dumps(field.name).decode() + ":", texts) for field, texts in columns]
    inner = _join(*(pc.fill_null(member, "") for member in members))
    return _join(pc.binary_replace_slice(inner, 0, 1, "{"), "}")


def _elements(column: pa.ListArray, texts: pa.Array) -> pa.Array:
    """Join the texts of each list's elements with commas; null where the list is null."""
    lengths = pc.fill_null(pc.list_value_length(column), 0)
    offsets = pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(lengths).cast(pa.int32())])
    joined = pc.binary_join(pa.ListArray.from_arrays(offsets, texts), ",")
    return pc.if_else(column.is_valid(), joined, pa.scalar(None, pa.string()))
