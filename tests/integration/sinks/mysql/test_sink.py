"""A table in a real MariaDB: the public suite, broken connections, values and refusals."""

from __future__ import annotations

import signal
import threading
import uuid
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings

import mariadb_server
from headwater.errors import RowError, SchemaError, SinkRefused, SinkUnavailable, UsageError
from headwater.sinks import Batch, crash
from headwater.sinks.mysql.sink import MySqlSink
from headwater.testing.sink_suite import KEY, SCHEMA, Check, TargetUnderTest, checks
from repeated_batches import AGAIN, BATCHES, Changes, committed


def named(check: Check) -> str:
    return getattr(check, "__name__", "check")


def target(server: mariadb_server.Server, database: str) -> TargetUnderTest:
    def run(*queries: str) -> list[Any]:
        with server.connect(database) as db, db.cursor() as cursor:
            for query in queries:
                cursor.execute(query)
            return list(cursor.fetchall())

    def visible() -> list[dict[str, Any]]:
        return [
            dict(zip(("k", "n", "note"), row, strict=True)) for row in run("SELECT k, n, note FROM people")
        ]

    def save() -> Callable[[], object]:
        tables = ("people", "headwater_sinks")
        run(*(f"CREATE TABLE saved_{table} AS SELECT * FROM {table}" for table in tables))  # noqa: S608
        return lambda: run(
            *(f"DELETE FROM {table}" for table in tables),  # noqa: S608
            *(f"INSERT INTO {table} SELECT * FROM saved_{table}" for table in tables),  # noqa: S608
        )

    opened = opened_people(server, database)
    with opened() as sink:
        sink.begin()
    return TargetUnderTest(opened, visible, save)


def opened_people(server: mariadb_server.Server, database: str) -> Callable[[], MySqlSink]:
    return lambda: MySqlSink(server.url(database), "people", SCHEMA, KEY)


@pytest.mark.parametrize("check", checks(), ids=named)
def test_a_table_is_effectively_once(
    check: Check, mariadb: mariadb_server.Server, mariadb_database: str
) -> None:
    check(target(mariadb, mariadb_database))


def test_values_are_read_back_as_they_were(mariadb: mariadb_server.Server, mariadb_database: str) -> None:
    columns = (
        "id STRING, yes BOOLEAN, tiny TINYINT, many BIGINT, part DOUBLE, small FLOAT, price DECIMAL(20,4), "
        "day DATE, at TIMESTAMP, there TIMESTAMP_NTZ, raw BINARY, tags ARRAY<STRING>, `100% free` STRING"
    )
    row = {
        "id": "a ", "yes": True, "tiny": -7, "many": 2**63 - 1, "part": 0.1 + 0.2, "small": 0.5,
        "price": Decimal("-1234567890.1234"), "day": date(2026, 2, 28),
        "at": datetime(2026, 1, 2, 3, 4, 5, 678901, UTC), "there": datetime(1999, 12, 31, 23, 59, 59, 1),
        "raw": b"\x00\xff'\\", "tags": ["née", None, '"x"'], "100% free": "zero \0, quote ', emoji 🦆, %s",
    }  # fmt: skip
    nulls = dict.fromkeys(row) | {"id": "a"}
    with MySqlSink(mariadb.url(mariadb_database), "values of %s", columns, "id") as sink:
        sink.begin()
        schema = sink._keyed.schema
        sink.commit(Batch(0, pa.Table.from_pylist([row, nulls], schema=schema)))
        assert not sink.commit(Batch(0, pa.Table.from_pylist([row], schema=schema)))
        contents = sink.read_back()
        read = [each for batch in contents.rows for each in batch.to_pylist()]
        assert sorted(read, key=lambda each: each["id"]) == [nulls, row]
        gone = pa.table({**{name: [None] for name in row}, "id": ["a"], "_deleted": [True]})
        sink.commit(Batch(1, gone.cast(pa.schema([*schema, pa.field("_deleted", pa.bool_())]))))
        assert [each["id"] for batch in sink.read_back().rows for each in batch.to_pylist()] == ["a "]


def test_a_value_that_the_table_has_not_refuses_the_batch_and_nothing_is_written(
    mariadb: mariadb_server.Server, mariadb_database: str
) -> None:
    with MySqlSink(mariadb.url(mariadb_database), "people", "id STRING, n DOUBLE", "id") as sink:
        sink.begin()
        with pytest.raises(RowError, match="MySQL has not"):
            sink.commit(Batch(0, pa.table({"id": ["a", "b"], "n": [1.0, float("nan")]})))
        with pytest.raises(RowError, match="does not fit"):
            sink.commit(Batch(0, pa.table({"id": ["a", "b" * 300], "n": [1.0, 2.0]})))
        assert sum(map(len, sink.read_back().rows)) == 0
        assert sink.commit(Batch(0, pa.table({"id": ["a"], "n": [1.0]})))


def test_a_server_that_is_killed_has_each_batch_whole_and_the_commit_is_repeated(
    mariadb: mariadb_server.Server, mariadb_database: str
) -> None:
    people = target(mariadb, mariadb_database)
    with people.open() as sink:
        sink.begin()
        rows = pa.table({"k": [f"k{n}" for n in range(2000)], "n": range(2000), "note": ["x"] * 2000})
        for number in range(3):
            crash.watch(lambda name: mariadb.stop(signal.SIGTERM) if name == "mysql: rows put" else None)
            again = threading.Timer(1.0, lambda: (crash.watch(None), mariadb.start()))
            again.start()
            assert sink.commit(Batch(number, rows))
            again.join()
            assert not sink.commit(Batch(number, rows))
    assert len(list(people.visible())) == 2000


def test_a_table_of_your_own_is_filled_and_one_that_does_not_fit_is_refused(
    mariadb: mariadb_server.Server, mariadb_database: str
) -> None:
    def made(columns: str) -> MySqlSink:
        with mariadb.connect(mariadb_database) as db, db.cursor() as cursor:
            cursor.execute("DROP TABLE IF EXISTS mine, headwater_sinks")
            cursor.execute(f"CREATE TABLE mine ({columns})")
        return MySqlSink(mariadb.url(mariadb_database), "mine", "id BIGINT, name STRING", "id")

    for columns in ("id BIGINT PRIMARY KEY", "id BIGINT, name TEXT",
                    "id BIGINT PRIMARY KEY, name VARCHAR(9) UNIQUE"):  # fmt: skip
        with made(columns) as sink, pytest.raises(SchemaError, match="not as its sink needs it"):
            sink.begin()
    with made("id BIGINT PRIMARY KEY, name TEXT, more INT DEFAULT 7") as sink:
        sink.begin()
        sink.commit(Batch(0, pa.table({"id": [1], "name": ["ada"]})))
        assert [row for batch in sink.read_back().rows for row in batch.to_pylist()] == [
            {"id": 1, "name": "ada"}
        ]


def test_a_table_that_lost_its_rows_or_its_record_is_refused(
    mariadb: mariadb_server.Server, mariadb_database: str
) -> None:
    people = target(mariadb, mariadb_database)
    with people.open() as sink, mariadb.connect(mariadb_database) as db, db.cursor() as cursor:
        sink.begin()
        sink.commit(Batch(0, pa.table({"k": ["a"], "n": [1], "note": ["x"]})))
        cursor.execute("DELETE FROM people")
        with pytest.raises(SinkRefused, match="is empty"):
            sink.begin()
        cursor.execute("DROP TABLE people")
        with pytest.raises(SinkRefused, match="is gone"):
            sink.begin()
        with pytest.raises(UsageError, match="not begun"):
            opened_people(mariadb, mariadb_database)().commit(Batch(0, pa.table({})))


def test_a_server_that_is_away_is_unavailable_and_a_password_is_not_told(
    mariadb: mariadb_server.Server, mariadb_database: str
) -> None:
    with MySqlSink("mysql://root@127.0.0.1:1/shop", "t", SCHEMA, KEY, retry_timeout="1 second") as sink:
        with pytest.raises(SinkUnavailable, match="cannot be used") as away:
            sink.begin()
        assert not isinstance(away.value, SinkRefused)
    url = mariadb.url(mariadb_database).replace("root@", "nobody:rabbit-hole-99@")
    with MySqlSink(url, "t", SCHEMA, KEY) as sink, pytest.raises(SinkRefused) as refused:
        sink.begin()
    assert "rabbit" not in f"{refused.value} {refused.value.__cause__} {sink!r}"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=8)
@given(batches=BATCHES, again=AGAIN)
def test_batches_that_are_repeated_come_to_a_dictionary(
    batches: list[Changes], again: list[int], mariadb: mariadb_server.Server, mariadb_database: str
) -> None:
    table = f"h{uuid.uuid4().hex[:12]}"
    with MySqlSink(mariadb.url(mariadb_database), table, "id BIGINT, name STRING", "id") as sink:
        expected = committed(sink, batches, again)
        read = [row for batch in sink.read_back().rows for row in batch.to_pylist()]
    assert {row["id"]: row["name"] for row in read} == expected
