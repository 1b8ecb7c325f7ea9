"""Rows as Avro: whoever reads them by their schema has the rows, or nothing was written."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from fastavro import schemaless_reader
from hypothesis import given
from hypothesis import strategies as st

from avro_kit import MILLIS, record
from headwater import topic
from headwater.errors import RowError, TopicError
from headwater.formats import avro, avro_writing
from headwater.formats.writer_schema import TargetSubject, WriterSchema
from soaking import examples


class Subjects:
    """A registry that has one schema, or gets one."""

    def __init__(self, text: str | None = None):
        self.text = text

    def subject(self, name: str, otherwise: Callable[[], str]) -> TargetSubject:
        self.text = self.text or otherwise()
        return TargetSubject(258, WriterSchema(self.text))

    def kind(self, id: int) -> str:
        return "AVRO"

    def get(self, id: int, kind: str) -> WriterSchema:
        assert id == 258
        return WriterSchema(self.text or "")


KINDS: dict[str, st.SearchStrategy[Any]] = {
    "BOOLEAN": st.booleans(),
    "TINYINT": st.integers(-128, 127),
    "INT NOT NULL": st.integers(-(2**31), 2**31 - 1),
    "BIGINT": st.integers(-(2**63), 2**63 - 1),
    "FLOAT": st.floats(width=32),
    "DOUBLE": st.floats(),
    "STRING": st.text(),
    "BINARY": st.binary(max_size=5),
    "DATE": st.dates(),
    "TIMESTAMP": st.datetimes(),
    "TIMESTAMP_NTZ": st.datetimes(),
    "DECIMAL(9,2)": st.decimals(-9_999_999, 9_999_999, places=2),
    "ARRAY<STRUCT<x: INT, y: STRING>>": st.lists(
        st.none() | st.fixed_dictionaries({"x": st.none() | st.integers(-9, 9), "y": st.text()}), max_size=3
    ),
    "MAP<STRING, DOUBLE>": st.dictionaries(st.text(), st.none() | st.floats(allow_nan=False), max_size=3).map(
        lambda drawn: list(drawn.items())
    ),
    "STRUCT<a: BIGINT, b: ARRAY<BOOLEAN>>": st.fixed_dictionaries(
        {"a": st.none() | st.integers(-9, 9), "b": st.none() | st.lists(st.booleans(), max_size=2)}
    ),
}
DECLARED = topic.create(
    "web.orders", ", ".join(f"c{n} {kind}" for n, kind in enumerate(KINDS)), format="avro"
)


@st.composite
def batches(draw: st.DrawFn) -> pa.RecordBatch:
    count = draw(st.integers(0, 4))
    columns = []
    for field, values in zip(DECLARED.schema, KINDS.values(), strict=True):
        each = st.none() | values if field.nullable else values
        columns.append(pa.array(draw(st.lists(each, min_size=count, max_size=count)), field.type))
    return pa.RecordBatch.from_arrays(columns, schema=DECLARED.schema)


@examples(200)
@given(batches())
def test_what_is_written_is_read_as_the_same_rows(batch: pa.RecordBatch) -> None:
    subjects = Subjects()
    values = avro_writing.encode(batch, DECLARED, subjects)
    assert all(value[:5] == b"\0\0\0\1\2" for value in values)
    back, bad = avro.decode(values, DECLARED, subjects)
    assert bad == []
    assert str(back.to_pylist()) == str(batch.to_pylist())  # as text, NaN is itself
    for value, row in zip(values, batch.to_pylist(), strict=True):
        read: Any = schemaless_reader(io.BytesIO(value[5:]), json.loads(subjects.text or ""), None)
        assert (read["c2"], read["c6"], read["c8"]) == (row["c2"], row["c6"], row["c8"])


def rows(columns: str, **row: Any) -> tuple[topic.Topic, pa.RecordBatch]:
    declared = topic.create("orders", columns, format="avro")
    return declared, pa.RecordBatch.from_pylist([row], schema=declared.schema)


def test_a_schema_that_the_registry_has_is_the_one_to_write_with() -> None:
    known = record(("id", "long"), ("at", MILLIS), ("more", ["null", "string"]))
    known["fields"][2]["default"] = None
    declared, batch = rows("at TIMESTAMP, id BIGINT", id=7, at=1_767_268_800_000_000)
    subjects = Subjects(json.dumps(known))
    [value] = avro_writing.encode(batch, declared, subjects)
    assert avro.decode([value], declared, subjects)[0].equals(batch)


@pytest.mark.parametrize(
    ("columns", "row", "fields", "error"),
    [
        ("id BIGINT", {"id": 2**40}, [("id", "int")], RowError),
        ("id BIGINT", {"id": None}, [("id", "long")], RowError),
        ("at TIMESTAMP", {"at": 1}, [("at", MILLIS)], RowError),
        ("x DOUBLE", {"x": 0.1}, [("x", "float")], RowError),
        ("s STRING", {"s": "1"}, [("s", "long")], RowError),
        ("id BIGINT, n INT", {"id": 1, "n": 2}, [("id", "long")], TopicError),
        ("id BIGINT", {"id": 1}, [("id", "long"), ("needed", "string")], RowError),
    ],
)
def test_a_row_that_the_schema_would_change_is_refused(
    columns: str, row: dict[str, Any], fields: list[tuple[str, Any]], error: type[Exception]
) -> None:
    declared, batch = rows(columns, **row)
    with pytest.raises(error):
        avro_writing.encode(batch, declared, Subjects(json.dumps(record(*fields))))


@pytest.mark.parametrize(
    "columns", ["v VARIANT, n INT", "m MAP<INT, INT>", "`a b` INT", "s STRUCT<`x y`: INT>"]
)
def test_columns_that_avro_has_no_form_for_are_refused(columns: str) -> None:
    with pytest.raises(TopicError, match="cannot be written as Avro"):
        avro_writing.schema_of(topic.create("t", columns))
