"""From the bytes of records to Arrow batches, by the formats of their topic.

With a ``key_format`` the columns of the key are read from the record's key and the others from its value;
without one all of them are in the value. Invariant: every value is a row, in its order, or has its
index and its error, whatever the format.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import orjson
import pyarrow as pa

from headwater import wire_format
from headwater.errors import LogRefused, RowError
from headwater.formats import csv_records, json_schema, whole_value
from headwater.formats.writer_schema import WriterSchemas
from headwater.topic import Topic
from headwater.values import jsonl
from headwater.values.bulk import Bad, Rows

REGISTERED = ("avro", "protobuf")
"""Formats whose values cannot be read without a schema registry."""

_PLAIN: dict[str, Callable[[Sequence[bytes], Topic], Rows]] = {
    "json": jsonl.decode,
    "json_schema": json_schema.decode,
    "csv": csv_records.decode,
    "text": whole_value.decode,
    "bytes": whole_value.decode,
}


def decode_values(values: Sequence[bytes], topic: Topic, writers: WriterSchemas) -> Rows:
    """Return the columns that values hold, and the values that do not fit."""
    if topic.format == wire_format.JSON and topic.key_format is None:
        return jsonl.decode(values, topic)
    key = topic.key if topic.key_format is None else ()
    return _decode(values, _part(topic, topic.value_schema, key, topic.format), writers)


def decode_keys(keys: Sequence[bytes], topic: Topic, writers: WriterSchemas) -> Rows:
    """Return the columns of the key, and the keys that do not fit."""
    assert topic.key_format is not None
    schema = pa.schema([topic.schema.field(name) for name in topic.key])
    part = _part(topic, schema, topic.key, topic.key_format)
    if topic.key_format == wire_format.JSON:
        return _json_keys(keys, part)
    return _decode(keys, part, writers)


def names_schemas(format: str) -> bool:
    """Tell whether values of a format say which schema of a registry they were written with."""
    return format in (*REGISTERED, "json_schema")


def check(topic: Topic) -> None:
    """Refuse formats that cannot be read here: a library is missing, or a schema is none."""
    for format in (topic.format, topic.key_format or wire_format.JSON):
        if wire_format.name(format) in REGISTERED:
            _library(format)
        if format.startswith(wire_format.RAW_AVRO):
            from headwater.formats import avro

            avro.check_raw(format)


def _decode(values: Sequence[bytes], topic: Topic, writers: WriterSchemas) -> Rows:
    if topic.format in _PLAIN:
        return _PLAIN[topic.format](values, topic)
    return _library(topic.format)(values, topic, writers)


def _library(format: str) -> Callable[[Sequence[bytes], Topic, WriterSchemas], Rows]:
    """Return what decodes a format with a library that not everybody has."""
    try:
        if format == "protobuf":
            from headwater.formats import protobuf

            return protobuf.decode
        from headwater.formats import avro
    except ImportError as error:
        raise LogRefused(
            f'format "{wire_format.name(format)}" is not installed',
            detail=str(error),
            hint="run `pip install 'headwater[kafka]'`",
        ) from None
    if format.startswith(wire_format.RAW_AVRO):
        return lambda values, topic, _: avro.decode_raw(values, topic)
    return avro.decode


def _part(topic: Topic, schema: pa.Schema, key: tuple[str, ...], format: str) -> Topic:
    """Return the topic of a record's value or key alone, of which nothing is computed."""
    return Topic(topic.name, (schema,), key, format=format)


def _json_keys(keys: Sequence[bytes], topic: Topic) -> Rows:
    """Return keys that are objects of the key's columns, or the value of the only one."""
    if len(topic.key) > 1:
        return jsonl.decode(keys, topic)
    name, bad, places, objects = orjson.dumps(topic.key[0]), list[Bad](), list[int](), list[bytes]()
    for index, key in enumerate(keys):
        try:
            bare = type(orjson.loads(key)) is not dict  # alone, so that none can bring a member of its own
            objects.append(b"{%s:%s}" % (name, key) if bare else key)
            places.append(index)
        except orjson.JSONDecodeError as error:
            bad.append((index, RowError(f'key is not JSON, for topic "{topic.name}"', detail=error.msg)))
    batch, misfits = jsonl.decode(objects, topic)
    return batch, sorted([*bad, *((places[at], error) for at, error in misfits)], key=lambda each: each[0])
