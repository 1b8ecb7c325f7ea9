"""The tables of a real database."""

from __future__ import annotations

from collections.abc import Callable

import psycopg
import pyarrow as pa
import pytest

from headwater.capture.postgres.catalog import Catalog
from headwater.capture.postgres.pgoutput import Relation, RelationColumn
from headwater.capture.postgres.source import PostgresSource

Capture = Callable[..., PostgresSource]


def test_a_table_is_listed_with_its_columns(db: psycopg.Connection, capture: Capture) -> None:
    columns = "line int, id bigint, total numeric(10,2) NOT NULL, note varchar(20), gone int"
    twice = "twice int GENERATED ALWAYS AS (line * 2) STORED"
    db.execute(f"CREATE TABLE orders ({columns}, {twice}, PRIMARY KEY (id, line))")
    db.execute("ALTER TABLE orders DROP gone")
    (table,) = [each for each in capture().tables() if "." not in each.name]
    assert (table.name, table.key) == ("orders", ("id", "line"))
    assert [
        (each.name, each.type, each.sql_type, each.nullable, each.generated) for each in table.columns
    ] == [
        ("line", pa.int32(), "integer", False, False),
        ("id", pa.int64(), "bigint", False, False),
        ("total", pa.decimal128(10, 2), "numeric(10,2)", False, False),
        ("note", pa.string(), "character varying(20)", True, False),
    ]


def test_generated_columns_are_neither_listed_nor_in_chunks(db: psycopg.Connection, capture: Capture) -> None:
    db.execute("CREATE TABLE orders (id int PRIMARY KEY, twice int GENERATED ALWAYS AS (id * 2) STORED)")
    db.execute("INSERT INTO orders VALUES (1)")
    assert capture().chunk("orders", None, 10).rows.schema.names == ["id"]


@pytest.mark.parametrize(
    ("made", "key"),
    [
        ("CREATE TABLE t (id int PRIMARY KEY)", ("id",)),
        ("CREATE TABLE t (id int)", ()),
        ("CREATE TABLE t (id int PRIMARY KEY); ALTER TABLE t REPLICA IDENTITY NOTHING", ()),
        ("CREATE TABLE t (id int PRIMARY KEY); ALTER TABLE t REPLICA IDENTITY FULL", ("id",)),
        ("CREATE TABLE t (id int); ALTER TABLE t REPLICA IDENTITY FULL", ()),
        ("CREATE TABLE t (id int PRIMARY KEY DEFERRABLE)", ()),
        ("CREATE TABLE t (a int, id int NOT NULL); CREATE UNIQUE INDEX u ON t (id) INCLUDE (a);"
         "ALTER TABLE t REPLICA IDENTITY USING INDEX u", ("id",)),
        ("CREATE UNLOGGED TABLE t (id int PRIMARY KEY)", ()),
        ("CREATE TABLE t (id int, twice int GENERATED ALWAYS AS (id * 2) STORED PRIMARY KEY)", ()),
        ("CREATE TABLE t (id int PRIMARY KEY) PARTITION BY HASH (id)", ("id",)),
    ],
)  # fmt: skip
def test_the_key_is_what_identifies_rows_in_changes(
    db: psycopg.Connection, capture: Capture, made: str, key: tuple[str, ...]
) -> None:
    db.execute(made)
    (table,) = [each for each in capture().tables() if each.name == "t"]
    assert table.key == key


def test_a_table_of_another_schema_is_named_with_it(
    db: psycopg.Connection, capture: Capture, database: str
) -> None:
    db.execute("CREATE TABLE t (id int PRIMARY KEY)")
    (schema,) = db.execute("SELECT current_schema()").fetchone() or ("",)
    names = [each.name for each in capture(database.split("?")[0]).tables()]
    assert f"{schema}.t" in names
    assert "t" not in names


def test_a_table_that_is_older_in_the_stream_is_as_it_was(db: psycopg.Connection) -> None:
    db.execute("CREATE TABLE t (id int PRIMARY KEY, now text)")
    number, schema = db.execute("SELECT 't'::regclass::oid::int8, current_schema()").fetchone() or (0, "")
    columns = (RelationColumn("id", 23, -1, True), RelationColumn("before", 4711_000, -1, False))
    layout = Catalog().layout(db, Relation(number, schema, "t", "f", columns))
    assert layout.table.name == "t"
    assert layout.table.key == ("id",)
    assert [(each.name, each.type, each.nullable) for each in layout.table.columns] == [
        ("id", pa.int32(), False), ("before", pa.string(), True),
    ]  # fmt: skip
