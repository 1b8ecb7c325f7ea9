"""Rows in the order of their key, however the key is compared."""

from __future__ import annotations

from typing import Any

from headwater.capture.source import CaptureSource
from source_kit import SqliteDatabase


def begun(database: SqliteDatabase, *made: str) -> CaptureSource:
    database.execute(*made)
    source = database.source()
    source.begin(["t"], None)
    return source


def every(source: CaptureSource, limit: int) -> list[Any]:
    found, after = [], None
    while not (chunk := source.chunk("t", after, limit)).last:
        found += chunk.rows.column(0).to_pylist()
        after = chunk.after
    return found + chunk.rows.column(0).to_pylist()


def test_keys_are_read_in_the_order_of_their_collation(database: SqliteDatabase) -> None:
    source = begun(
        database,
        "CREATE TABLE t (k TEXT NOT NULL COLLATE NOCASE PRIMARY KEY)",
        "INSERT INTO t VALUES ('b'), ('A'), ('C'), ('a2'), ('B1')",
    )
    assert every(source, 2) == ["A", "a2", "b", "B1", "C"]


def test_keys_of_bytes_and_fractions_are_read(database: SqliteDatabase) -> None:
    source = begun(
        database,
        "CREATE TABLE t (k BLOB, f REAL, PRIMARY KEY (k, f)) WITHOUT ROWID",
        "INSERT INTO t VALUES (x'00', 0.1), (x'00', 0.30000000000000004), (x'00', 0.3), (x'ff', 1)",
    )
    assert every(source, 1) == [b"\0", b"\0", b"\0", b"\xff"]


def test_values_that_do_not_fit_are_told_by_row(database: SqliteDatabase) -> None:
    source = begun(
        database,
        "CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER)",
        "INSERT INTO t VALUES (1, 5), (2, 'five'), (3, NULL)",
    )
    chunk = source.chunk("t", None, 10)
    assert chunk.rows.to_pydict() == {"id": [1, 2, 3], "n": [5, None, None]}
    assert chunk.unfit == {1: 'column "n" (INTEGER) holds the text five'}


def test_rows_without_a_key_are_with_the_first_chunk_and_do_not_fit(database: SqliteDatabase) -> None:
    source = begun(
        database,
        "CREATE TABLE t (k TEXT PRIMARY KEY, n)",
        "INSERT INTO t (k) VALUES (NULL), ('a'), (NULL), ('b')",
    )
    chunk = source.chunk("t", None, 1)
    assert chunk.rows.column(0).to_pylist() == [None, None, "a"]
    assert chunk.unfit == dict.fromkeys([0, 1], 'column "k" of the key is null')
    assert chunk.after == ("a",)
    assert source.chunk("t", chunk.after, 10).rows.column(0).to_pylist() == ["b"]
