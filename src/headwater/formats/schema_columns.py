"""Columns of a registered schema, as Spark DDL has them.

What has no type here, a union of several types or a record inside of itself, is free JSON. Invariant: a
declaration of these columns reads every value that was written with the schema.
"""

from __future__ import annotations

import json
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from headwater.formats import protobuf
from headwater.formats.json_columns import VARIANT, GuessedColumn, quoted
from headwater.formats.writer_schema import WriterSchema

_AVRO = {
    "boolean": "BOOLEAN", "int": "INT", "long": "BIGINT", "float": "FLOAT", "double": "DOUBLE",
    "bytes": "BINARY", "string": "STRING", "enum": "STRING", "fixed": "BINARY",
}  # fmt: skip
_AVRO_LOGICAL = {
    "date": "DATE", "uuid": "STRING",
    "timestamp-millis": "TIMESTAMP", "timestamp-micros": "TIMESTAMP",
    "local-timestamp-millis": "TIMESTAMP_NTZ", "local-timestamp-micros": "TIMESTAMP_NTZ",
}  # fmt: skip
_F = FieldDescriptor
_PROTOBUF = {
    _F.CPPTYPE_BOOL: "BOOLEAN", _F.CPPTYPE_INT32: "INT", _F.CPPTYPE_UINT32: "BIGINT",
    _F.CPPTYPE_INT64: "BIGINT", _F.CPPTYPE_UINT64: "DECIMAL(20,0)", _F.CPPTYPE_FLOAT: "FLOAT",
    _F.CPPTYPE_DOUBLE: "DOUBLE", _F.CPPTYPE_ENUM: "STRING",
}  # fmt: skip
_PROTOBUF_MESSAGES = {
    "google.protobuf.Timestamp": "TIMESTAMP", "google.type.Date": "DATE",
    "confluent.type.Decimal": "DECIMAL(38,9)",
}  # fmt: skip


def of_avro(schema: WriterSchema) -> list[GuessedColumn] | str:
    """Return the columns of a record, or the one type of what is none."""
    named: dict[str, Any] = {}
    for reference in schema.references:
        _name_types(reference.schema, named)
    parsed = json.loads(schema.text)
    _collect(parsed, "", named)
    record = parsed if isinstance(parsed, dict) and parsed.get("type") in ("record", "error") else None
    if record is None:
        return _avro(parsed, named, ()) or VARIANT
    path = (record["name"],)
    return [GuessedColumn(f["name"], _avro(f["type"], named, path) or VARIANT) for f in record["fields"]]


def _name_types(schema: WriterSchema, named: dict[str, Any]) -> None:
    for reference in schema.references:
        _name_types(reference.schema, named)
    _collect(json.loads(schema.text), "", named)


def _collect(schema: Any, space: str, named: dict[str, Any]) -> None:
    """Remember the named types of a schema, under their short and their full names."""
    if isinstance(schema, list):
        for each in schema:
            _collect(each, space, named)
    elif isinstance(schema, dict):
        if "name" in schema and isinstance(schema.get("type"), str) and schema["type"] not in _AVRO:
            space = schema.get("namespace", space)
        if "name" in schema and schema.get("type") in ("record", "error", "enum", "fixed"):
            named[schema["name"]] = schema
            if space and "." not in schema["name"]:
                named[f"{space}.{schema['name']}"] = schema
        for part in ("type", "items", "values"):
            if isinstance(schema.get(part), dict | list):
                _collect(schema[part], space, named)
        for field in schema.get("fields", ()):
            _collect(field["type"], space, named)


def _avro(schema: Any, named: dict[str, Any], path: tuple[str, ...]) -> str | None:
    """Return the type of a schema, None where only free JSON holds it: that cannot be inside of another."""
    if isinstance(schema, list):
        branches = [each for each in schema if each != "null"]
        return _avro(branches[0], named, path) if len(branches) == 1 else None
    if isinstance(schema, str):
        return (
            _AVRO[schema]
            if schema in _AVRO
            else _avro(named[schema], named, path)
            if schema in named
            else None
        )
    kind, logical = schema["type"], schema.get("logicalType")
    if logical == "decimal":
        return (
            f"DECIMAL({schema['precision']},{schema.get('scale', 0)})" if schema["precision"] <= 38 else None
        )
    if logical in _AVRO_LOGICAL:
        return _AVRO_LOGICAL[logical]
    if kind == "array":
        return _wrapped("ARRAY<{}>", _avro(schema["items"], named, path))
    if kind == "map":
        return _wrapped("MAP<STRING, {}>", _avro(schema["values"], named, path))
    if kind in ("record", "error"):
        return _avro_struct(schema, named, path)
    return _avro(kind, named, path)


def _avro_struct(schema: Any, named: dict[str, Any], path: tuple[str, ...]) -> str | None:
    if schema["name"] in path or not schema["fields"]:
        return None
    inner = [(each["name"], _avro(each["type"], named, (*path, schema["name"]))) for each in schema["fields"]]
    return _struct(inner)


def of_protobuf(schema: WriterSchema, path: tuple[int, ...]) -> list[GuessedColumn]:
    """Return the columns of a message of a schema."""
    descriptor = protobuf.message_type(schema, path)
    types = [(field.name, _protobuf(field, (descriptor.full_name,))) for field in descriptor.fields]
    return [GuessedColumn(name, kind or VARIANT) for name, kind in types]


def _protobuf(field: FieldDescriptor, path: tuple[str, ...]) -> str | None:
    if protobuf.is_map(field):
        parts = field.message_type.fields_by_name
        key, value = _protobuf_one(parts["key"], path), _protobuf_one(parts["value"], path)
        return None if value is None else f"MAP<{key}, {value}>"
    one = _protobuf_one(field, path)
    return _wrapped("ARRAY<{}>", one) if protobuf.is_repeated(field) else one


def _protobuf_one(field: FieldDescriptor, path: tuple[str, ...]) -> str | None:
    message = field.message_type
    if message is None:
        if field.cpp_type == _F.CPPTYPE_STRING:
            return "BINARY" if field.type == _F.TYPE_BYTES else "STRING"
        return _PROTOBUF[field.cpp_type]
    if message.full_name in protobuf.WRAPPERS:
        return _protobuf_one(message.fields_by_name["value"], path)
    if message.full_name in _PROTOBUF_MESSAGES:
        return _PROTOBUF_MESSAGES[message.full_name]
    return _protobuf_struct(message, path)


def _protobuf_struct(message: Descriptor, path: tuple[str, ...]) -> str | None:
    if message.full_name in (*path, "google.protobuf.Struct", "google.protobuf.Value") or not message.fields:
        return None
    inside = (*path, message.full_name)
    return _struct([(field.name, _protobuf(field, inside)) for field in message.fields])


def _struct(fields: list[tuple[str, str | None]]) -> str | None:
    if any(kind is None for _, kind in fields):
        return None
    return f"STRUCT<{', '.join(f'{quoted(name)}: {kind}' for name, kind in fields)}>"


def _wrapped(outer: str, inner: str | None) -> str | None:
    return None if inner is None else outer.format(inner)
