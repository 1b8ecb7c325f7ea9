"""Protobuf messages of a schema that is made here, as a registry would have it."""

from __future__ import annotations

import base64
from decimal import Decimal
from typing import Any

from google.protobuf import (
    descriptor_pb2,
    descriptor_pool,
    duration_pb2,
    message_factory,
    struct_pb2,
    timestamp_pb2,
    wrappers_pb2,
)
from hypothesis import strategies as st

F = descriptor_pb2.FieldDescriptorProto
SCALARS: dict[str, tuple[int, str, st.SearchStrategy[Any]]] = {
    "flag": (F.TYPE_BOOL, "BOOLEAN", st.booleans()),
    "small": (F.TYPE_INT32, "INT", st.integers(-(2**31), 2**31 - 1)),
    "wide": (F.TYPE_SINT64, "BIGINT", st.integers(-(2**63), 2**63 - 1)),
    "positive": (F.TYPE_UINT64, "DECIMAL(20,0)", st.integers(0, 2**64 - 1)),
    "single": (F.TYPE_FLOAT, "FLOAT", st.floats(width=32, allow_nan=False)),
    "ratio": (F.TYPE_DOUBLE, "DOUBLE", st.floats(allow_nan=False)),
    "text": (F.TYPE_STRING, "STRING", st.text()),
    "data": (F.TYPE_BYTES, "BINARY", st.binary(max_size=9)),
}
DEFAULTS = {
    "flag": False, "small": 0, "wide": 0, "positive": Decimal(0), "single": 0.0, "ratio": 0.0, "text": "",
    "data": b"",
}  # fmt: skip
COLOURS = ["RED", "GREEN", "BLUE"]


def file() -> descriptor_pb2.FileDescriptorProto:
    """Return a file with an enum, two messages, and one inside of another; the second is ``order``."""
    made = descriptor_pb2.FileDescriptorProto(name="shop.proto", package="shop", syntax="proto3")
    for known in ("timestamp", "wrappers", "struct", "duration"):
        made.dependency.append(f"google/protobuf/{known}.proto")
    colour = made.enum_type.add(name="Colour")
    for number, name in enumerate(COLOURS):
        colour.value.add(name=name, number=number)
    made.message_type.add(name="Other").field.add(
        name="x", number=1, type=F.TYPE_INT32, label=F.LABEL_OPTIONAL
    )
    order = made.message_type.add(name="Order")
    for number, (name, (kind, _, _)) in enumerate(SCALARS.items(), start=1):
        order.field.add(name=name, number=number, type=kind, label=F.LABEL_OPTIONAL)
    order.oneof_decl.add(name="_maybe")
    maybe = order.field.add(
        name="maybe", number=20, type=F.TYPE_INT32, label=F.LABEL_OPTIONAL, proto3_optional=True
    )
    maybe.oneof_index = 0
    for number, (name, kind, label) in enumerate(
        [
            ("colour", ".shop.Colour", F.LABEL_OPTIONAL), ("colours", ".shop.Colour", F.LABEL_REPEATED),
            ("line", ".shop.Order.Line", F.LABEL_OPTIONAL), ("lines", ".shop.Order.Line", F.LABEL_REPEATED),
            ("at", ".google.protobuf.Timestamp", F.LABEL_OPTIONAL),
            ("note", ".google.protobuf.StringValue", F.LABEL_OPTIONAL),
            ("count", ".google.protobuf.Int64Value", F.LABEL_OPTIONAL),
            ("free", ".google.protobuf.Struct", F.LABEL_OPTIONAL),
            ("took", ".google.protobuf.Duration", F.LABEL_OPTIONAL),
            ("stock", ".shop.Order.StockEntry", F.LABEL_REPEATED),
        ],
        start=30,
    ):  # fmt: skip
        type = F.TYPE_ENUM if "Colour" in kind else F.TYPE_MESSAGE
        order.field.add(name=name, number=number, type=type, type_name=kind, label=label)
    order.nested_type.add(name="Line").field.add(
        name="item", number=1, type=F.TYPE_STRING, label=F.LABEL_OPTIONAL
    )
    entry = order.nested_type.add(name="StockEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=F.TYPE_STRING, label=F.LABEL_OPTIONAL)
    entry.field.add(name="value", number=2, type=F.TYPE_INT32, label=F.LABEL_OPTIONAL)
    return made


def pool_of(*files: descriptor_pb2.FileDescriptorProto) -> descriptor_pool.DescriptorPool:
    pool = descriptor_pool.DescriptorPool()
    for known in (timestamp_pb2, wrappers_pb2, struct_pb2, duration_pb2):
        pool.AddSerializedFile(known.DESCRIPTOR.serialized_pb)
    for each in files:
        pool.Add(each)
    return pool


POOL = pool_of(file())


def message(name: str = "shop.Order", pool: Any = POOL, **fields: Any) -> Any:
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))(**fields)


def text_of(each: descriptor_pb2.FileDescriptorProto) -> str:
    return base64.b64encode(each.SerializeToString()).decode()
