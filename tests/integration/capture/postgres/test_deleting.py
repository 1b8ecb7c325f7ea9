"""Rows that are deleted by their keys, as a chunk has them."""

from __future__ import annotations

from collections.abc import Callable

import psycopg
import pytest
from psycopg.sql import SQL, Literal

from headwater.capture.outbox.captured_outbox import named_rows, row_names
from headwater.capture.postgres.source import PostgresSource

Capture = Callable[..., PostgresSource]


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("int", ["-5", "0", "7"]),
        ("numeric(30, 10)", ["0.0000000001", "0.0000000002", "-1"]),
        ("text", ["é", "%s", "'"]),
        ("uuid", ["00000000-0000-0000-0000-000000000001", "f0000000-0000-0000-0000-000000000002"]),
        ("bytea", ["\\x00", "\\xff", "\\x27"]),
        ("timestamptz", ["2024-01-02 03:04:05.678901+00", "1999-01-01 00:00:00+05"]),
        ("timestamp", ["2024-01-02 03:04:05.678901", "1999-01-01"]),
        ("date", ["2024-01-02", "1000-01-01"]),
    ],
)
def test_rows_of_keys_of_every_kind_are_deleted(
    db: psycopg.Connection, capture: Capture, kind: str, values: list[str]
) -> None:
    db.execute(SQL('CREATE TABLE "A b" (k {}, n int, PRIMARY KEY (k, n))').format(SQL(kind)))  # type: ignore[arg-type]
    for value in values:
        db.execute(SQL('INSERT INTO "A b" VALUES ({0}, 1), ({0}, 2)').format(Literal(value)))
    source = capture()
    rows = source.chunk("A b", None, 10).rows
    some = rows.filter(rows["n"].to_numpy() == 1)
    assert source.delete_rows("A b", named_rows(row_names(some, ["k", "n"]), some.schema))
    assert db.execute('SELECT n FROM "A b"').fetchall() == [(2,)] * len(values)


def test_rows_of_partitions_are_deleted_and_those_that_are_not_there_left_out(
    db: psycopg.Connection, capture: Capture
) -> None:
    db.execute("CREATE TABLE events (id int PRIMARY KEY) PARTITION BY RANGE (id)")
    db.execute("CREATE TABLE few PARTITION OF events FOR VALUES FROM (0) TO (10)")
    db.execute("CREATE TABLE more PARTITION OF events FOR VALUES FROM (10) TO (20)")
    db.execute("INSERT INTO events VALUES (1), (2), (11)")
    source = capture()
    rows = source.chunk("events", None, 10).rows
    db.execute("DELETE FROM events WHERE id = 2")
    assert source.delete_rows("events", rows.slice(1))
    assert db.execute("SELECT id FROM events").fetchall() == [(1,)]
