"""Avro: what fastavro has written, with whichever schema, is read exactly or refused."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from avro_kit import DATE, FIXED_MONEY, MICROS, MILLIS, MONEY, POINT, encoded, record, written
from headwater import topic
from headwater.errors import RowError, TopicError
from headwater.formats import avro
from headwater.formats.writer_schema import SchemaReference, WriterSchema
from soaking import examples


def plain(value: Any) -> Any:
    """Return a value as Arrow gives it back."""
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list) else value


@examples(400)
@given(written())
def test_what_was_written_is_read_exactly(
    drawn: tuple[topic.Topic, str, list[bytes], list[dict[str, Any]]],
) -> None:
    declared, _, values, rows = drawn
    batch, bad = avro.decode_raw(values, declared)
    assert bad == []
    assert batch.schema == declared.schema
    for found, row in zip(batch.to_pylist(), rows, strict=True):
        assert found.pop("missing") is None
        assert found.keys() == row.keys()
        for name, expected in plain(row).items():
            assert same(found[name], expected), (found, row)


def same(found: Any, expected: Any) -> bool:
    """Tell whether Arrow gives back what was written; its maps are lists of pairs."""
    if isinstance(expected, dict):
        pairs = dict(found) if isinstance(found, list) else found
        return pairs.keys() == expected.keys() and all(same(pairs[k], expected[k]) for k in expected)
    if isinstance(expected, list):
        return len(found) == len(expected) and all(map(same, found, expected))
    return bool(found == expected)


@examples(300)
@given(written(), st.data())
def test_a_value_that_is_cut_off_or_too_long_is_named_and_the_others_kept(
    drawn: tuple[topic.Topic, str, list[bytes], list[dict[str, Any]]], data: st.DataObject
) -> None:
    declared, _, values, _ = drawn
    spoilt = [data.draw(st.sampled_from([value, value[:-1], value + b"\0"])) for value in values]
    batch, bad = avro.decode_raw(spoilt, declared)
    wrong = [at for at, (one, other) in enumerate(zip(spoilt, values, strict=True)) if one != other]
    assert [at for at, _ in bad] == wrong
    alone = [avro.decode_raw([value], declared)[0] for value in spoilt]
    assert batch.to_pylist() == [row for each in alone for row in each.to_pylist()]


class Schemas:
    """A registry of a few schemas."""

    def __init__(self, **schemas: Any):
        self.schemas = {int(id.removeprefix("s")): schema for id, schema in schemas.items()}

    def get(self, id: int, kind: str) -> WriterSchema:
        if id not in self.schemas:
            raise RowError(f"no schema {id}")
        schema = self.schemas[id]
        return schema if isinstance(schema, WriterSchema) else WriterSchema(json.dumps(schema))


def framed(id: int, schema: Any, value: Any) -> bytes:
    return b"\0" + id.to_bytes(4, "big") + encoded(schema, value)


def test_records_of_several_versions_are_rows_of_one_batch() -> None:
    old = record(("id", "int"), ("name", "string"))
    new = record(("name", ["null", "string"]), ("id", "long"), ("price", MONEY))
    values = [
        framed(1, old, {"id": 1, "name": "a"}),
        framed(2, new, {"id": 2**40, "name": None, "price": Decimal("1.50")}),
        framed(9, old, {"id": 3, "name": "?"}),
        framed(1, old, {"id": 4, "name": "d"}),
        b"\0\0\0\0\1",
    ]
    declared = topic.create("orders", "id BIGINT NOT NULL, price DECIMAL(9,2), name STRING", format="avro")
    batch, bad = avro.decode(values, declared, Schemas(s1=old, s2=new))
    assert batch.to_pylist() == [
        {"id": 1, "price": None, "name": "a"},
        {"id": 2**40, "price": Decimal("1.50"), "name": None},
        {"id": 4, "price": None, "name": "d"},
    ]
    assert [(at, error.message) for at, error in bad] == [
        (2, "no schema 9"),
        (4, 'value is not Avro, for topic "orders"'),
    ]


def test_a_schema_may_refer_to_others() -> None:
    fields = [{"name": "name", "type": "string"}, {"name": "at", "type": "shop.place"}]
    customer = WriterSchema(
        json.dumps({"type": "record", "name": "shop.customer", "fields": fields}),
        (SchemaReference("shop.place", WriterSchema(json.dumps({**POINT, "name": "shop.place"}))),),
    )
    order = record(("id", "int"), ("customer", "shop.customer"))
    schema = WriterSchema(json.dumps(order), (SchemaReference("shop.customer", customer),))
    place = {**POINT, "name": "shop.place"}
    whole = record(("id", "int"), ("customer", {"type": "record", "name": "c", "fields": [
        {"name": "name", "type": "string"}, {"name": "at", "type": place}]}))  # fmt: skip
    row = {"id": 7, "customer": {"name": "ada", "at": {"x": 1, "y": 2}}}
    declared = topic.create(
        "t", "id INT, customer STRUCT<name: STRING, at: STRUCT<x: INT, y: INT>>", format="avro"
    )
    batch, bad = avro.decode([framed(5, whole, row)], declared, Schemas(s5=schema))
    assert (batch.to_pylist(), bad) == ([row], [])


@pytest.mark.parametrize(
    ("schema", "value", "kind", "message"),
    [
        ("long", 1767225600000, "TIMESTAMP", "does not say in which unit"),
        ("long", 2**40, "INT", None),
        ("long", 1, "STRING", None),
        ("string", "1", "BIGINT", None),
        ("double", 1.5, "BIGINT", "fraction"),
        ("double", 0.1, "FLOAT", None),
        ("boolean", True, "INT", None),
        (MILLIS, datetime(2026, 1, 1, tzinfo=UTC), "DATE", None),
        (DATE, date(2026, 1, 1), "TIMESTAMP", None),
        (MONEY, Decimal("1.25"), "DECIMAL(9,1)", None),
        ("bytes", b"x", "STRING", None),
        (["int", "string"], "x", "INT", None),
        (["null", "int"], None, "INT NOT NULL", None),
        ({"type": "array", "items": "string"}, ["x"], "ARRAY<INT>", None),
    ],
)
def test_a_value_that_its_column_cannot_hold_is_refused(
    schema: Any, value: Any, kind: str, message: str | None
) -> None:
    if kind == "FLOAT":
        value = 0.1 + 1e-12
    declared = topic.create("t", f"a {kind}, b INT", format="avro:" + json.dumps(record(("a", schema))))
    batch, bad = avro.decode_raw([encoded(record(("a", schema)), {"a": value})], declared)
    assert len(batch) == 0
    assert 'column "a"' in bad[0][1].message
    assert (message or "") in str(bad[0][1])


def test_a_logical_type_that_we_have_none_for_is_its_number() -> None:
    schema = record(
        ("a", {"type": "int", "logicalType": "time-millis"}),
        ("b", {"type": "long", "logicalType": "time-micros"}),
    )
    declared = topic.create("t", "a INT, b BIGINT", format="avro:" + json.dumps(schema))
    batch, bad = avro.decode_raw([encoded(record(("a", "int"), ("b", "long")), {"a": 5, "b": 6})], declared)
    assert (batch.to_pylist(), bad) == ([{"a": 5, "b": 6}], [])


def test_a_value_without_fields_is_the_only_column() -> None:
    declared = topic.create("t", "word STRING", format='avro:"string"')
    assert avro.decode_raw([encoded("string", "hello")], declared)[0].to_pylist() == [{"word": "hello"}]
    maps = {"type": "map", "values": "int"}
    declared = topic.create("t", "counts MAP<STRING, INT>", format="avro:" + json.dumps(maps))
    assert avro.decode_raw([encoded(maps, {"a": 1})], declared)[0].to_pylist() == [{"counts": [("a", 1)]}]
    declared = topic.create("t", "a STRING, b STRING", format='avro:"string"')
    _, [(_, error)] = avro.decode_raw([encoded("string", "hello")], declared)
    assert error.message == 'Avro value has no fields, and topic "t" has the columns a, b'


def test_free_json_takes_any_value() -> None:
    schema = record(("a", ["null", "string", POINT, FIXED_MONEY, MICROS, "bytes"]))
    declared = topic.create("t", "a VARIANT, b INT", format="avro:" + json.dumps(schema))
    values: list[Any] = [
        None,
        "x",
        {"x": 1, "y": 2},
        Decimal("1.50"),
        datetime(2026, 1, 2, tzinfo=UTC),
        b"hi",
    ]
    batch, bad = avro.decode_raw([encoded(schema, {"a": value}) for value in values], declared)
    assert bad == []
    assert batch.column("a").to_pylist() == [
        None, '"x"', '{"x":1,"y":2}', '"1.50"', '"2026-01-02T00:00:00.000000Z"', '"aGk="'
    ]  # fmt: skip


def test_a_format_whose_schema_is_not_avros_is_refused() -> None:
    avro.check_raw('avro:"string"')
    with pytest.raises(TopicError, match="is not Avro"):
        avro.check_raw('avro:{"type":"recrod"}')


def test_a_batch_of_no_values_has_the_columns() -> None:
    declared = topic.create("t", "a INT", format='avro:"int"')
    batch, bad = avro.decode_raw([], declared)
    assert (batch.schema, len(batch), bad) == (pa.schema([("a", pa.int32())]), 0, [])


@examples(100)
@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=5))
def test_nanoseconds_are_a_time_where_microseconds_tell_it_or_a_number(counts: list[int]) -> None:
    nanos, local = ({"type": "long", "logicalType": f"{kind}timestamp-nanos"} for kind in ("", "local-"))
    schema = record(("at", nanos), ("there", local), ("number", nanos))
    values = [encoded(schema, {"at": n, "there": n, "number": n}) for n in counts]
    columns = "at TIMESTAMP, there TIMESTAMP_NTZ, number BIGINT"
    batch, bad = avro.decode_raw(values, topic.create("orders", columns, format=f"avro:{json.dumps(schema)}"))
    exact = [n for n in counts if n % 1000 == 0]
    assert [each.value for each in batch.column("at").cast(pa.timestamp("us"))] == [n // 1000 for n in exact]
    assert batch.column("there").cast(pa.int64()).to_pylist() == [n // 1000 for n in exact]
    assert batch.column("number").to_pylist() == exact
    assert [at for at, _ in bad] == [at for at, n in enumerate(counts) if n % 1000]
    for _, error in bad:
        assert "nanoseconds would be cut off" in str(error.detail)
        assert "BIGINT" in str(error.hint)
