"""Avro that fastavro has written: schemas, values for them, and what Headwater has to read."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from fastavro import parse_schema, schemaless_writer
from hypothesis import strategies as st

from headwater import topic

MILLIS = {"type": "long", "logicalType": "timestamp-millis"}
MICROS = {"type": "long", "logicalType": "timestamp-micros"}
LOCAL = {"type": "long", "logicalType": "local-timestamp-micros"}
DATE = {"type": "int", "logicalType": "date"}
UUIDS = {"type": "string", "logicalType": "uuid"}
MONEY = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
FIXED_MONEY = {**MONEY, "type": "fixed", "name": "money", "size": 8}
ENUM = {"type": "enum", "name": "colour", "symbols": ["RED", "GREEN"]}
POINT = {
    "type": "record",
    "name": "point",
    "fields": [{"name": "x", "type": "int"}, {"name": "y", "type": "int"}],
}
SMALL = st.integers(-9, 9)
CENTS = st.integers(-(10**9) + 1, 10**9 - 1).map(lambda n: Decimal(n).scaleb(-2))
TIMES = st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1))


def in_millis(at: datetime) -> datetime:
    return at.replace(tzinfo=UTC, microsecond=at.microsecond // 1000 * 1000)


LEAVES: list[tuple[Any, str, st.SearchStrategy[Any]]] = [
    ("boolean", "BOOLEAN", st.booleans()),
    ("int", "INT", st.integers(-(2**31), 2**31 - 1)),
    ("int", "BIGINT", st.integers(-(2**31), 2**31 - 1)),
    ("int", "DOUBLE", st.integers(-(2**31), 2**31 - 1)),
    ("long", "BIGINT", st.integers(-(2**63), 2**63 - 1)),
    ("long", "DECIMAL(20,0)", st.integers(-(2**63), 2**63 - 1)),
    ("float", "FLOAT", st.floats(width=32, allow_nan=False)),
    ("float", "DOUBLE", st.floats(width=32, allow_nan=False)),
    ("double", "DOUBLE", st.floats(allow_nan=False)),
    ("string", "STRING", st.text()),
    ("bytes", "BINARY", st.binary(max_size=9)),
    (MICROS, "TIMESTAMP", TIMES.map(lambda at: at.replace(tzinfo=UTC))),
    (MILLIS, "TIMESTAMP", TIMES.map(lambda at: in_millis(at))),
    (LOCAL, "TIMESTAMP_NTZ", TIMES),
    (DATE, "DATE", st.dates()),
    (UUIDS, "STRING", st.uuids()),
    (MONEY, "DECIMAL(9,2)", CENTS),
    (FIXED_MONEY, "DECIMAL(9,2)", CENTS),
    (ENUM, "STRING", st.sampled_from(["RED", "GREEN"])),
    (POINT, "STRUCT<x: BIGINT, y: INT>", st.fixed_dictionaries({"x": SMALL, "y": SMALL})),
]  # fmt: skip


class Drawn:
    """A field as Avro and DDL have it, and values for it."""

    def __init__(self, avro: Any, ddl: str, values: st.SearchStrategy[Any]):
        self.avro, self.ddl, self.values = avro, ddl, values


def fields() -> st.SearchStrategy[Drawn]:
    def array(d: Drawn) -> Drawn:
        return Drawn({"type": "array", "items": d.avro}, f"ARRAY<{d.ddl}>", st.lists(d.values, max_size=3))

    def map_(d: Drawn) -> Drawn:
        values = st.dictionaries(st.text(), d.values, max_size=3)
        return Drawn({"type": "map", "values": d.avro}, f"MAP<STRING, {d.ddl}>", values)

    def nested(inner: st.SearchStrategy[Drawn]) -> st.SearchStrategy[Drawn]:
        return inner.map(array) | inner.map(map_)

    plain = st.sampled_from(LEAVES).map(lambda each: Drawn(*each))
    optional = st.recursive(plain, nested, max_leaves=3)
    return optional.flatmap(
        lambda d: st.sampled_from([d, Drawn(["null", d.avro], d.ddl, st.none() | d.values)])
    )


@st.composite
def written(draw: st.DrawFn) -> tuple[topic.Topic, str, list[bytes], list[dict[str, Any]]]:
    """Return a topic, an Avro schema, values written with it, and the rows that they are."""
    drawn = draw(st.lists(fields(), min_size=1, max_size=4))
    members, names = [], set[str]()
    for number, each in enumerate(drawn):
        members.append({"name": f"f{number}", "type": renamed(each.avro, f"_{number}")})
        names.add(f"f{number}")
    schema = {"type": "record", "name": "r", "fields": [*members, {"name": "more", "type": "string"}]}
    columns = ", ".join([f"f{number} {each.ddl}" for number, each in enumerate(drawn)] + ["missing INT"])
    declared = topic.create("t", columns, format="avro:" + json.dumps(schema))
    rows = draw(
        st.lists(st.fixed_dictionaries({f"f{n}": each.values for n, each in enumerate(drawn)}), max_size=5)
    )
    return declared, json.dumps(schema), [encoded(schema, {**row, "more": "x"}) for row in rows], rows


def renamed(schema: Any, end: str) -> Any:
    """Return a schema whose named types have names of their own."""
    if isinstance(schema, list):
        return [renamed(each, end) for each in schema]
    if isinstance(schema, dict):
        made = {
            name: renamed(value, end) if name in ("items", "values") else value
            for name, value in schema.items()
        }
        return made | ({"name": schema["name"] + end} if "name" in schema else {})
    return schema


def encoded(schema: Any, value: Any) -> bytes:
    stream = io.BytesIO()
    schemaless_writer(stream, parse_schema(schema), value)
    return stream.getvalue()


def record(*members: tuple[str, Any]) -> dict[str, Any]:
    return {
        "type": "record",
        "name": "order",
        "fields": [{"name": name, "type": kind} for name, kind in members],
    }
