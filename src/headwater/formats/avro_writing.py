"""Rows as Avro, for programs that read a topic by its schema in a registry.

A schema that the registry has for the topic is the one to write with; where it has none, one is made of the
topic's columns. What is written is read again before it is sent. Invariant: a value that is returned is
read as the row that it was made of, or nothing is returned.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from io import BytesIO
from typing import Any

import pyarrow as pa
from fastavro import schemaless_writer, validate

from headwater.errors import RowError, TopicError
from headwater.formats import avro, wire
from headwater.formats.writer_schema import SchemaSubjects, WriterSchema
from headwater.schema import is_variant, type_name
from headwater.topic import Topic
from headwater.values import jsonl

_t = pa.types
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SIMPLE: list[tuple[Callable[[pa.DataType], bool], str]] = [
    (_t.is_boolean, "boolean"),
    (_t.is_int64, "long"),
    (_t.is_integer, "int"),
    (_t.is_float32, "float"),
    (_t.is_floating, "double"),
    (_t.is_string, "string"),
    (_t.is_binary, "bytes"),
]


def encode(batch: pa.RecordBatch, topic: Topic, subjects: SchemaSubjects) -> list[bytes]:
    """Return each row as Avro, with the id of its schema before it."""
    target = subjects.subject(f"{topic.name}-value", lambda: schema_of(topic))
    parsed = avro.parsed(target.schema)
    _check_columns(parsed, topic)
    prefix = b"\0" + target.id.to_bytes(wire.PREFIX - 1, "big")
    rows = [_row(row, topic) for row in batch.to_pylist()]
    if target.schema.text != schema_of(topic):  # the columns' own schema holds all that they hold
        _check_ranges(rows, parsed, topic)
    # Row by row, as the library writes no other way.
    bodies = [_written(parsed, row, topic) for row in rows]
    _check_same(bodies, batch, topic, target.schema)
    return [prefix + body for body in bodies]


def schema_of(topic: Topic) -> str:
    """Return an Avro schema of a topic's columns; one that may be null is null if it is missing.

    >>> from headwater import topic
    >>> schema_of(topic.create("orders", "id BIGINT NOT NULL"))
    '{"type": "record", "name": "orders", "fields": [{"name": "id", "type": "long"}]}'
    """
    name = re.sub(r"\W", "_", topic.name)
    return json.dumps(_record(name if _NAME.fullmatch(name) else f"_{name}", list(topic.schema), topic))


def _record(name: str, fields: Sequence[pa.Field], topic: Topic) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [_field(field, name, topic) for field in fields]}


def _field(field: pa.Field, record: str, topic: Topic) -> dict[str, Any]:
    if is_variant(field) or not _NAME.fullmatch(field.name):
        raise _unwritable(field, topic)
    kind = _type(field, f"{record}_{field.name}", topic)
    if field.nullable:
        return {"name": field.name, "type": ["null", kind], "default": None}
    return {"name": field.name, "type": kind}


def _type(field: pa.Field, name: str, topic: Topic) -> Any:
    kind = field.type
    for test, simple in _SIMPLE:
        if test(kind):
            return simple
    if _t.is_date(kind):
        return {"type": "int", "logicalType": "date"}
    if _t.is_timestamp(kind):
        return {"type": "long", "logicalType": "timestamp-micros" if kind.tz else "local-timestamp-micros"}
    if _t.is_decimal(kind):
        return {"type": "bytes", "logicalType": "decimal", "precision": kind.precision, "scale": kind.scale}
    if _t.is_struct(kind):
        return _record(name, list(kind), topic)
    if _t.is_map(kind) and _t.is_string(kind.key_type):
        return {"type": "map", "values": ["null", _type(kind.item_field, f"{name}_value", topic)]}
    if _t.is_list(kind):
        return {"type": "array", "items": ["null", _type(kind.value_field, f"{name}_item", topic)]}
    raise _unwritable(field, topic)


def _unwritable(field: pa.Field, topic: Topic) -> TopicError:
    return TopicError(
        f'column "{field.name}" of topic "{topic.name}" cannot be written as Avro',
        detail=f"it is {type_name(field)}, and Avro's names are letters, digits and _"
        if not _NAME.fullmatch(field.name)
        else f"it is {type_name(field)}",
    )


def _check_columns(parsed: Any, topic: Topic) -> None:
    """Refuse columns that the schema has no field for: they would be left out without a word."""
    fields = parsed.get("fields", ()) if isinstance(parsed, dict) else ()
    missing = sorted(set(topic.schema.names) - {field["name"] for field in fields})
    if missing:
        raise TopicError(
            f'topic "{topic.name}" has columns that its schema in the registry has no field for',
            detail=", ".join(missing),
            hint="register a version of the schema that has them, or declare the topic without them",
        )


def _check_ranges(rows: Sequence[dict[str, Any]], parsed: Any, topic: Topic) -> None:
    """Refuse numbers that are too large for the schema: written and read here they would be the same."""
    for row in rows:
        try:
            validate(row, parsed)
        except Exception as error:  # as below
            raise _misfit(topic, f"{error!s:.200}") from None


def _row(row: dict[str, Any], topic: Topic) -> dict[str, Any]:
    return {field.name: _plain(row[field.name], field.type) for field in topic.schema}


def _plain(value: Any, kind: pa.DataType) -> Any:
    """Return a value as fastavro takes it: a map of Arrow's is a list of pairs."""
    if value is None or not _t.is_nested(kind):
        return value
    if _t.is_map(kind):
        return {key: _plain(item, kind.item_type) for key, item in value}
    if _t.is_list(kind):
        return [_plain(item, kind.value_type) for item in value]
    return {field.name: _plain(value[field.name], field.type) for field in kind}


def _written(parsed: Any, row: dict[str, Any], topic: Topic) -> bytes:
    stream = BytesIO()
    try:
        schemaless_writer(stream, parsed, row)
    except Exception as error:  # of a value that the schema has no place for, the library raises anything
        raise _misfit(topic, f"{error!s:.200}") from None
    return stream.getvalue()


def _check_same(bodies: Sequence[bytes], batch: pa.RecordBatch, topic: Topic, schema: WriterSchema) -> None:
    """Refuse rows that would be read as others: of a number that is too long, the library cuts off bits."""
    back, bad = avro.decode_bodies(bodies, Topic(topic.name, (topic.schema,)), schema)
    if bad:
        raise _misfit(topic, str(bad[0][1].message))
    sent = pa.RecordBatch.from_arrays(batch.columns, schema=topic.schema)
    if not back.equals(sent) and jsonl.encode(back, topic) != jsonl.encode(sent, topic):  # which knows NaN
        raise _misfit(topic, "a value would be changed")


def _misfit(topic: Topic, detail: str) -> RowError:
    return RowError(
        f'row of topic "{topic.name}" cannot be written with its schema in the registry', detail=detail
    )
