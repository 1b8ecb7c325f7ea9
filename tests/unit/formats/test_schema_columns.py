"""Columns of registered schemas: a declaration of them reads what was written with the schema."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given

import avro_kit
import protobuf_kit
from headwater import topic
from headwater.formats import avro, schema_columns
from headwater.formats.json_columns import GuessedColumn
from headwater.formats.writer_schema import SchemaReference, WriterSchema
from soaking import examples


def ddl(columns: list[GuessedColumn] | str) -> str:
    return columns if isinstance(columns, str) else ", ".join(each.ddl for each in columns)


@examples(200)
@given(avro_kit.written())
def test_a_declaration_of_the_columns_reads_every_avro_value(drawn: Any) -> None:
    declared, schema, values, _ = drawn
    guessed = topic.create("t", ddl(schema_columns.of_avro(WriterSchema(schema))), format=declared.format)
    batch, bad = avro.decode_raw(values, guessed)
    assert (bad, len(batch)) == ([], len(values))


@pytest.mark.parametrize(
    ("schema", "columns"),
    [
        ("string", "STRING"),
        ({"type": "map", "values": "int"}, "MAP<STRING, INT>"),
        (avro_kit.record(("a", ["null", "long"]), ("b", ["int", "string"])), "a BIGINT, b VARIANT"),
        (avro_kit.record(("a", {"type": "array", "items": ["int", "string"]})), "a VARIANT"),
        (avro_kit.record(("next", ["null", "order"])), "next VARIANT"),
        (avro_kit.record(("p", avro_kit.POINT), ("q", "point")),
         "p STRUCT<x: INT, y: INT>, q STRUCT<x: INT, y: INT>"),
        (avro_kit.record(("m", avro_kit.MONEY), ("t", {"type": "int", "logicalType": "time-millis"})),
         "m DECIMAL(9,2), t INT"),
    ],
)  # fmt: skip
def test_avro_types_are_those_of_columns(schema: Any, columns: str) -> None:
    assert ddl(schema_columns.of_avro(WriterSchema(json.dumps(schema)))) == columns


def test_types_of_other_schemas_are_found_by_their_names() -> None:
    place = WriterSchema(json.dumps({**avro_kit.POINT, "namespace": "geo"}))
    order = WriterSchema(
        json.dumps(avro_kit.record(("at", "geo.point"))), (SchemaReference("geo.point", place),)
    )
    assert ddl(schema_columns.of_avro(order)) == "at STRUCT<x: INT, y: INT>"


def test_protobuf_types_are_those_of_columns() -> None:
    schema = WriterSchema(protobuf_kit.text_of(protobuf_kit.file()))
    assert ddl(schema_columns.of_protobuf(schema, (0,))) == "x INT"
    assert ddl(schema_columns.of_protobuf(schema, (1,))) == (
        "flag BOOLEAN, small INT, wide BIGINT, positive DECIMAL(20,0), single FLOAT, ratio DOUBLE, "
        "text STRING, data BINARY, maybe INT, "
        "colour STRING, colours ARRAY<STRING>, line STRUCT<item: STRING>, "
        "lines ARRAY<STRUCT<item: STRING>>, at TIMESTAMP, note STRING, count BIGINT, free VARIANT, "
        "took STRUCT<seconds: BIGINT, nanos: INT>, stock MAP<STRING, INT>"
    )
