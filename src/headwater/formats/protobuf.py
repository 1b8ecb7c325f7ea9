"""Protobuf: values whose schema is in a registry, which gives it as a file descriptor, or as text.

Fields go to the columns of their names. A field that can tell whether it is set is null where it is not; one
that cannot has its default, as everywhere in Protobuf. Enums are text; wrappers, timestamps and dates are
what they stand for. Invariant: a value is kept exactly, or its row is refused.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from importlib import import_module
from typing import Any

import pyarrow as pa
from google.protobuf import descriptor_pb2, json_format
from google.protobuf.descriptor import Descriptor, FieldDescriptor, FileDescriptor
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from headwater.formats import proto_text, registered, wire
from headwater.formats.registered import Codec, ReadValue
from headwater.formats.typed_rows import DICTS, RowForm, json_text
from headwater.formats.writer_schema import WriterSchema, WriterSchemas
from headwater.topic import Topic
from headwater.values.bulk import Rows
from headwater.values.columns import Form, Misfit

_MOST_SCHEMAS = 1000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_KNOWN = ("any", "api", "descriptor", "duration", "empty", "field_mask", "source_context", "struct",
          "timestamp", "type", "wrappers")  # fmt: skip
"""Files of ``google/protobuf`` that every compiler brings."""
WRAPPERS = {
    f"google.protobuf.{name}Value"
    for name in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
}


def decode(values: Sequence[bytes], topic: Topic, writers: WriterSchemas) -> Rows:
    """Return the rows of values that name a schema of the registry, and those that do not fit."""
    return registered.decode(values, topic, writers, CODEC)


def message_type(schema: WriterSchema, path: Sequence[int]) -> Descriptor:
    """Return the type of a message, by the path to it in its schema."""
    return _message(_file(schema), path)


class _Row:
    """A message as a mapping of its fields."""

    __slots__ = ("_fields", "message")

    def __init__(self, message: Message):
        self.message = message
        self._fields = _getters(message.DESCRIPTOR)

    def __repr__(self) -> str:
        return str(self.message)

    def get(self, name: str) -> Any:
        """Return a field's value; None where it is not set, or the schema has none of that name."""
        getter = self._fields.get(name)
        return None if getter is None else getter(self.message)


@lru_cache(_MOST_SCHEMAS)
def _reader(schema: WriterSchema) -> ReadValue:
    file = _file(schema)
    found: dict[tuple[int, ...], type[Message]] = {}

    def read(body: bytes) -> _Row:
        path, encoded = wire.message_path(body)
        if path not in found:
            found[path] = GetMessageClass(_message(file, path))
        return _Row(found[path].FromString(encoded))

    return read


def _file(schema: WriterSchema) -> FileDescriptor:
    """Return a schema's file, in a pool of its own: another schema may have the same names."""
    pool, added = DescriptorPool(), set[str]()
    for name in _KNOWN:
        _add_known(pool, added, import_module(f"google.protobuf.{name}_pb2").DESCRIPTOR)
    _add_references(pool, added, schema)
    own = _parsed(schema, "headwater-value.proto")
    pool.Add(own)
    return pool.FindFileByName(own.name)


def _add_known(pool: DescriptorPool, added: set[str], file: FileDescriptor) -> None:
    for dependency in file.dependencies:
        _add_known(pool, added, dependency)
    if file.name not in added:
        pool.AddSerializedFile(file.serialized_pb)
        added.add(file.name)


def _add_references(pool: DescriptorPool, added: set[str], schema: WriterSchema) -> None:
    for reference in schema.references:
        _add_references(pool, added, reference.schema)
        if reference.name not in added:
            pool.Add(_parsed(reference.schema, reference.name))
            added.add(reference.name)


def _parsed(schema: WriterSchema, name: str) -> descriptor_pb2.FileDescriptorProto:
    try:
        described = base64.b64decode(schema.text, validate=True)
    except ValueError:  # a brace or a quote is not base64
        return proto_text.compiled(schema, name)
    file = descriptor_pb2.FileDescriptorProto.FromString(described)
    file.name = name
    return file


def _message(file: FileDescriptor, path: Sequence[int]) -> Descriptor:
    """Return the type of a message, by the path to it: its place in the file, and in each type on the way."""
    proto = descriptor_pb2.FileDescriptorProto()
    file.CopyToProto(proto)
    names, level = [], proto.message_type
    for index in path:
        if not 0 <= index < len(level):
            raise ValueError(f"its schema has no message {list(path)}")
        names.append(level[index].name)
        level = level[index].nested_type
    full = ".".join([proto.package, *names] if proto.package else names)
    return file.pool.FindMessageTypeByName(full)


Getter = Callable[[Any], Any]


@lru_cache(_MOST_SCHEMAS)
def _getters(descriptor: Descriptor) -> Mapping[str, Getter]:
    return {field.name: _getter(field) for field in descriptor.fields}


def _getter(field: FieldDescriptor) -> Getter:
    name, convert = field.name, _conversion(field)
    if is_map(field):
        key, item = (_conversion(field.message_type.fields_by_name[part]) for part in ("key", "value"))
        return lambda message: {key(k): item(v) for k, v in getattr(message, name).items()}
    if is_repeated(field):
        return lambda message: [convert(value) for value in getattr(message, name)]
    if field.has_presence:
        return lambda message: convert(getattr(message, name)) if message.HasField(name) else None
    return lambda message: convert(getattr(message, name))


def is_map(field: FieldDescriptor) -> bool:
    """Tell whether a field is a map, which is a list of entries to Protobuf."""
    kind = field.message_type
    return bool(kind is not None and kind.has_options and kind.GetOptions().map_entry)


def is_repeated(field: FieldDescriptor) -> bool:
    """Tell whether a field is a list."""
    known = getattr(field, "is_repeated", None)  # since version 6
    return field.label == FieldDescriptor.LABEL_REPEATED if known is None else bool(known)


def _conversion(field: FieldDescriptor) -> Getter:
    if field.enum_type is not None:
        names = {number: value.name for number, value in field.enum_type.values_by_number.items()}
        return lambda number: _enum(number, names)
    if field.message_type is None:
        return lambda value: value
    name = field.message_type.full_name
    return _value_of if name in WRAPPERS else _MESSAGES.get(name, _Row)


def _enum(number: int, names: Mapping[int, str]) -> str:
    if number not in names:
        raise Misfit(f"its enum has no value {number}")
    return names[number]


def _value_of(message: Any) -> Any:
    return message.value


def _timestamp(message: Any) -> datetime:
    micros, rest = divmod(message.nanos, 1000)
    if rest:
        raise Misfit("its nanoseconds would be cut off")
    return _EPOCH + timedelta(seconds=message.seconds, microseconds=micros)


def _date(message: Any) -> date:
    return date(message.year, message.month, message.day)


def _decimal(message: Any) -> Decimal:
    unscaled = int.from_bytes(message.value, "big", signed=True)
    sign, digits, _ = Decimal(unscaled).as_tuple()
    return Decimal((sign, digits, -message.scale))


_MESSAGES: dict[str, Getter] = {
    "google.protobuf.Timestamp": _timestamp,
    "google.type.Date": _date,
    "confluent.type.Decimal": _decimal,
}


def _struct(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, _Row):
        raise Misfit
    return value  # type: ignore[return-value]  # of a mapping only get is asked


def _pairs(value: Any, kind: pa.DataType) -> Sequence[tuple[Any, Any]]:
    return DICTS.columns.pairs(value, kind)


def _json(value: Any) -> str:
    """Return a message as the JSON that Protobuf has for it, anything else as Headwater writes it."""
    if isinstance(value, _Row):
        return str(json_format.MessageToJson(value.message, preserving_proto_field_name=True, indent=None))
    if isinstance(value, list):
        return "[" + ",".join(map(_json, value)) + "]"
    if isinstance(value, dict):
        return "{" + ",".join(f"{json_text(str(name))}:{_json(item)}" for name, item in value.items()) + "}"
    return json_text(value)


CODEC = Codec(
    "PROTOBUF",
    "Protobuf",
    _reader,
    RowForm(Form(DICTS.columns.leaf, _struct, _pairs, DICTS.columns.items, strict=False), _json),
)
