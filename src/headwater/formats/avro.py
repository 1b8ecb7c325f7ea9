"""Avro: values whose schema is in a registry, or is the declaration's.

A value is read with the schema it was written with, and its fields go to the columns of their names: one
that is missing is null, one more is left out, an int is a BIGINT. Invariant: a value has exactly the bytes
that its schema says; a number is a time only where the schema says so.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from io import BytesIO
from typing import Any

from fastavro import parse_schema, schemaless_reader
from fastavro.read import LOGICAL_READERS

from headwater import wire_format
from headwater.errors import TopicError
from headwater.formats import registered
from headwater.formats.registered import Bare, Codec, ReadValue
from headwater.formats.typed_rows import DICTS, LocalNanoseconds, Nanoseconds
from headwater.formats.writer_schema import WriterSchema, WriterSchemas
from headwater.topic import Topic
from headwater.values.bulk import Rows
from headwater.values.columns import Misfit

_LOGICAL = {
    "date", "decimal", "uuid", "timestamp-millis", "timestamp-micros",
    "local-timestamp-millis", "local-timestamp-micros",
}  # fmt: skip
"""What is more to us than the number or the bytes it is written as."""
_OWN = {"timestamp-nanos": Nanoseconds, "local-timestamp-nanos": LocalNanoseconds}
"""The same, where the library has no type for it."""
for _name, _type in _OWN.items():  # under names that nobody else uses: the library knows one table for all
    LOGICAL_READERS[f"long-headwater-{_name}"] = lambda number, *_, as_type=_type: as_type(number)
_MOST_SCHEMAS = 1000


def decode(values: Sequence[bytes], topic: Topic, writers: WriterSchemas) -> Rows:
    """Return the rows of values that name a schema of the registry, and those that do not fit."""
    return registered.decode(values, topic, writers, CODEC)


def decode_raw(values: Sequence[bytes], topic: Topic) -> Rows:
    """Return the rows of values that are written with the schema of the topic's format."""
    return decode_bodies(values, topic, _of_format(topic.format))


def check_raw(format: str) -> None:
    """Refuse a format whose schema is not Avro's."""
    try:
        _reader(_of_format(format))
    except Exception as error:  # the library has many, and some of Python's own
        raise TopicError("the schema of the format is not Avro", detail=f"{error!s:.200}") from None


def _of_format(format: str) -> WriterSchema:
    return WriterSchema(format.removeprefix(wire_format.RAW_AVRO))


def decode_bodies(bodies: Sequence[bytes], topic: Topic, schema: WriterSchema) -> Rows:
    """Return the rows of values that are written with one schema, and those that do not fit."""
    return registered.decode_each(bodies, topic, _reader(schema), CODEC)


@lru_cache(_MOST_SCHEMAS)
def parsed(schema: WriterSchema) -> Any:
    """Return a schema as fastavro takes it."""
    return _parsed(schema, {})


@lru_cache(_MOST_SCHEMAS)
def _reader(schema: WriterSchema) -> ReadValue:
    written = parsed(schema)
    has_fields = _has_fields(written)

    def read(body: bytes) -> Any:
        stream = BytesIO(body)
        value = schemaless_reader(stream, written, None)
        if stream.tell() != len(body):
            raise Misfit(f"{len(body) - stream.tell()} bytes follow its end")
        return value if has_fields and isinstance(value, dict) else Bare(value)

    return read


def _parsed(schema: WriterSchema, named: dict[str, Any]) -> Any:
    """Return a schema as fastavro takes it, with those that it refers to."""
    for reference in schema.references:
        _parsed(reference.schema, named)
    return parse_schema(_plain(json.loads(schema.text)), named_schemas=named)


def _plain(schema: Any) -> Any:
    """Return a schema without the logical types that we have no type for."""
    if isinstance(schema, list):
        return [_plain(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    plain = {
        name: _plain(value) if name in ("type", "items", "values", "fields") else value
        for name, value in schema.items()
        if name != "logicalType" or value in _LOGICAL
    }
    own = schema.get("logicalType")
    return {**plain, "logicalType": f"headwater-{own}"} if own in _OWN else plain


def _has_fields(parsed: Any) -> bool:
    """Tell whether a value that is a dict is a record, and not a map."""
    branches = parsed if isinstance(parsed, list) else [parsed]
    return not any(isinstance(each, dict) and each.get("type") == "map" for each in branches)


CODEC = Codec("AVRO", "Avro", _reader, DICTS)
