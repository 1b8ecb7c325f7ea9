"""Every type comes through as the value that psycopg reads: in the stream, in both forms, and in chunks."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from psycopg.sql import SQL, Identifier

from capture_kit import deliveries, tables_changes
from headwater.capture.postgres.source import PostgresSource

Capture = Callable[..., PostgresSource]

SAME: dict[str, tuple[pa.DataType, list[str]]] = {
    "int2": (pa.int16(), ["-32768", "32767"]),
    "int4": (pa.int32(), ["-2147483648", "2147483647"]),
    "int8": (pa.int64(), ["-9223372036854775808", "9223372036854775807"]),
    "oid": (pa.int64(), ["0", "4294967295"]),
    "float4": (pa.float32(), ["1.1", "-Infinity", "1e-40"]),
    "float8": (pa.float64(), ["0.1", "1e308", "-0", "5e-324"]),
    "bool": (pa.bool_(), ["t", "f"]),
    "text": (pa.string(), ["", "ä€😀", 'with "quotes", {braces} and \\']),
    "varchar(5)": (pa.string(), ["ab"]),
    "char(5)": (pa.string(), ["ab"]),
    "name": (pa.string(), ["a_name"]),
    "bytea": (pa.binary(), ["\\x", "\\x00ff10"]),
    "date": (pa.date32(), ["0001-01-01", "9999-12-31", "2024-02-29"]),
    "timestamp": (pa.timestamp("us"), ["0001-01-01", "9999-12-31 23:59:59.999999", "1969-12-31 23:59:59.5"]),
    "timestamptz": (pa.timestamp("us", "UTC"), ["2024-06-01 12:00:00.000001+02", "0001-01-02 00:00+00"]),
    "numeric(10,2)": (pa.decimal128(10, 2), ["0", "-12345678.91", "0.05", "10000"]),
    "numeric(38,10)": (pa.decimal128(38, 10), ["9999999999999999999999999999.9999999999", "-0.0000000001"]),
    "numeric(5,5)": (pa.decimal128(5, 5), ["0.00001", "-0.99999"]),
    "price": (pa.decimal128(8, 2), ["1.50"]),
    "mood": (pa.string(), ["happy", "sad"]),
    "int4[]": (pa.list_(pa.int32()), ["{}", "{1,NULL,3}"]),
    "text[]": (pa.list_(pa.string()), ['{a,"b,c","d\\"e",NULL,"NULL",""}']),
    "numeric(6,2)[]": (pa.list_(pa.decimal128(6, 2)), ["{1.5,-2.25}"]),
    "date[]": (pa.list_(pa.date32()), ["{2024-01-01}"]),
    "bool[]": (pa.list_(pa.bool_()), ["{t,f,NULL}"]),
    "mood[]": (pa.list_(pa.string()), ["{happy}"]),
}
"""What psycopg reads as the value that Arrow holds."""

AS_PRINTED = {
    "json": ['{"a": [1, 2.50],  "b": null}', "null"],
    "jsonb": ['{"b": 1, "a": 2.50}', '"text"'],
    "uuid": ["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"],
    "numeric": ["123456789012345678901234567890.0100", "NaN", "1e-20"],
    "numeric(50,2)": ["12345678901234567890123456789012345678901234567.89"],
    "time": ["23:59:59.999999", "24:00:00"],
    "timetz": ["12:00:00+02"],
    "interval": ["1 year 2 mons -3 days 04:05:06.7"],
    "inet": ["10.1.2.3/24"],
    "int4range": ["[1,5)", "empty"],
    "point": ["(1.5,2)"],
    "bit(3)": ["101"],
    "xml": ["<a/>"],
    "pair": ["(1,two)"],
    "time[]": ["{12:00:00}"],
    "tsvector": ["'cat' 'sat'"],
}
"""What stays text."""


@pytest.fixture(params=["binary", "text"])
def form(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def types(db: psycopg.Connection) -> None:
    db.execute("CREATE TYPE mood AS ENUM ('sad', 'happy')")
    db.execute("CREATE DOMAIN price AS numeric(8,2) CHECK (VALUE >= 0)")
    db.execute("CREATE TYPE pair AS (a int, b text)")


def table_of(db: psycopg.Connection, kinds: dict[str, list[str]], form: str) -> list[str]:
    """Make a table with a column for each type; return their names."""
    extra = ", forces_text interval" if form == "text" else ""
    columns = {f"c{number}": kind for number, kind in enumerate(kinds)}
    written = ", ".join(f"{name} {kind}" for name, kind in columns.items())
    db.execute(f"CREATE TABLE everything (id int PRIMARY KEY, {written}{extra})")  # types of our own
    return list(columns)


def filled(db: psycopg.Connection, names: list[str], kinds: dict[str, list[str]]) -> None:
    """Insert a row for every number of values, with nulls where a type has fewer, and one of nulls."""
    for number in range(max(map(len, kinds.values())) + 1):
        values = [each[number] if number < len(each) else None for each in kinds.values()]
        columns = SQL(", ").join(map(Identifier, ["id", *names]))
        texts = SQL(", ").join(SQL("%s::text::") + SQL(kind) for kind in kinds)
        insert = SQL("INSERT INTO everything ({}) VALUES ({}, {})").format(columns, number, texts)
        db.execute(insert, values)


def captured(source: PostgresSource) -> pa.RecordBatch:
    batches = [each.rows for each in tables_changes(deliveries(source))]
    return pa.Table.from_batches(batches).combine_chunks().to_batches()[0]


def as_read(value: Any) -> Any:
    return value.hex() if isinstance(value, float) else value


def test_values_are_those_that_psycopg_reads(
    types: None, db: psycopg.Connection, database: str, capture: Capture, form: str
) -> None:
    kinds = {kind: values for kind, (_, values) in SAME.items()}
    names = table_of(db, kinds, form)
    source = capture()
    source.begin(["everything"], None)
    assert source._binary == (form == "binary")
    filled(db, names, kinds)
    streamed, chunk = captured(source), source.chunk("everything", None, 100).rows
    with psycopg.connect(f"{database}%20-ctimezone%3DUTC") as reader:
        from_enum = psycopg.types.TypeInfo.fetch(reader, "mood")
        assert from_enum is not None
        from_enum.register(reader)  # arrays of it too
        for name, (kind, (arrow, _)) in zip(names, SAME.items(), strict=True):
            read = reader.execute(
                SQL("SELECT {} FROM everything ORDER BY id").format(Identifier(name))
            ).fetchall()
            expected = [as_read(value) for (value,) in read]
            for batch in (streamed, chunk):
                assert batch.schema.field(name).type == arrow, kind
                if kind == "float4":  # psycopg reads it as the shortest text, Arrow as its very bits
                    expected = [None if v is None else as_read(pa.scalar(v, arrow).as_py()) for (v,) in read]
                assert [as_read(value) for value in batch.column(name).to_pylist()] == expected, kind
    assert streamed.equals(chunk)


def test_what_has_no_type_of_ours_is_text_as_postgresql_prints_it(
    types: None, db: psycopg.Connection, capture: Capture
) -> None:
    names = table_of(db, AS_PRINTED, "text")
    source = capture()
    source.begin(["everything"], None)
    filled(db, names, AS_PRINTED)
    streamed, chunk = captured(source), source.chunk("everything", None, 100).rows
    for name, kind in zip(names, AS_PRINTED, strict=True):
        query = SQL("SELECT {}::text FROM everything ORDER BY id").format(Identifier(name))
        expected = [value for (value,) in db.execute(query).fetchall()]
        assert streamed.column(name).to_pylist() == expected, kind
        assert chunk.column(name).to_pylist() == expected, kind
    assert streamed.equals(chunk)


def test_json_and_uuids_are_the_same_in_binary(db: psycopg.Connection, capture: Capture) -> None:
    kinds = {kind: AS_PRINTED[kind] for kind in ("json", "jsonb", "uuid")}
    names = table_of(db, kinds, "binary")
    source = capture()
    source.begin(["everything"], None)
    filled(db, names, kinds)
    streamed = captured(source)
    assert streamed.equals(source.chunk("everything", None, 100).rows)
    assert streamed.column("c0").to_pylist()[:2] == kinds["json"]
    assert [json.loads(value) for value in streamed.column("c1").to_pylist()[:2]] == [
        {"a": 2.5, "b": 1},
        "text",
    ]
    assert streamed.column("c2").to_pylist() == [*kinds["uuid"], None, None]


UNFIT = {
    "date": ["infinity", "0044-03-15 BC", "12000-01-01"],
    "timestamp": ["-infinity", "0044-03-15 10:00:00.5 BC", "12000-01-01 00:00:00"],
    "timestamptz": ["infinity", "0044-03-15 10:00:00+00 BC", "12000-01-01 00:00:00+00"],
    "numeric(8,2)": ["NaN", "NaN", "NaN"],
    "int4[]": ["{{1,2},{3,4}}", "{{1}}", "{{1}}"],
}


@pytest.mark.parametrize("kind", UNFIT)
def test_what_a_type_of_ours_cannot_hold_is_told(
    db: psycopg.Connection, capture: Capture, form: str, kind: str
) -> None:
    names = table_of(db, {kind: UNFIT[kind]}, form)
    db.execute("SET timezone = 'UTC'")
    source = capture()
    source.begin(["everything"], None)
    filled(db, names, {kind: UNFIT[kind]})
    changes = tables_changes(deliveries(source))
    told = [reason for each in changes for reason in each.unfit.values()]
    expected = [f'column "c0" cannot hold {value}' for value in UNFIT[kind]]
    if kind == "int4[]" and form == "binary":
        expected = ['column "c0" cannot hold an array of 2 dimensions'] * 3
    assert told == expected
    assert all(each.rows.column("c0").null_count == len(each) for each in changes)
    assert list(source.chunk("everything", None, 100).unfit) == [0, 1, 2]
