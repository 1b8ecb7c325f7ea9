"""The PostgreSQL sink against a real server that restarts, breaks connections off and says no."""

from __future__ import annotations

import math
import signal
import threading
import time
import uuid
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import partial
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from psycopg.sql import SQL, Identifier

from headwater import Position
from headwater.errors import Fenced, RowError, SchemaError, SinkRefused, SinkUnavailable, UsageError
from headwater.sinks import Batch, crash
from headwater.testing.sink_suite import KEY, SCHEMA, Check, TargetUnderTest, checks
from headwater.views import open_views
from headwater.views.postgres import PostgresSink
from postgres_server import Server, save

STOCK = "item STRING, count BIGINT"


@pytest.fixture
def table() -> str:
    return f"t_{uuid.uuid4().hex[:12]}"


@pytest.fixture
def watched() -> Iterator[None]:
    yield
    crash.watch(None)


def read(server: Server, table: str) -> list[dict[str, Any]]:
    with psycopg.connect(server.dsn, row_factory=psycopg.rows.dict_row) as db:
        return db.execute(SQL("SELECT * FROM {}").format(Identifier(*table.split(".")))).fetchall()


def stock(number: int, *deleted: str, **counts: int) -> Batch:
    rows = pa.table(
        {
            "item": pa.array([*counts, *deleted], pa.string()),
            "count": pa.array([*counts.values(), *(None for _ in deleted)], pa.int64()),
            "_deleted": [False] * len(counts) + [True] * len(deleted),
        }
    )
    return Batch(number, rows, (Position("orders", {0: number}),), number)


def contents(server: Server, table: str) -> dict[str, int]:
    return {row["item"]: row["count"] for row in read(server, table)}


@pytest.mark.parametrize("check", checks(), ids=lambda check: check.__name__)
def test_postgres_is_effectively_once(check: Check, server: Server, table: str) -> None:
    with PostgresSink(server.dsn, table, SCHEMA, KEY) as sink:
        sink.begin()
    opened = partial(PostgresSink, server.dsn, table, SCHEMA, KEY)
    check(TargetUnderTest(opened, lambda: read(server, table), lambda: save(server.dsn, table)))


def test_every_type_comes_back(server: Server, table: str) -> None:
    schema = (
        "k BIGINT, b BOOLEAN, t TINYINT, f FLOAT, d DOUBLE, s STRING, x BINARY, day DATE, at TIMESTAMP, "
        "wall TIMESTAMP_NTZ, n DECIMAL(38,5), a ARRAY<STRING>, m MAP<STRING, INT>, p STRUCT<q: BINARY>, "
        "v VARIANT"
    )
    kinds = {
        "t": pa.int8(),
        "f": pa.float32(),
        "n": pa.decimal128(38, 5),
        "m": pa.map_(pa.string(), pa.int32()),
        "wall": pa.timestamp("us"),
        "at": pa.timestamp("us", "UTC"),
    }
    rows: list[dict[str, Any]] = [
        {"k": 1, "b": True, "t": -5, "f": 1.5, "d": math.inf, "s": 'a "b",\n\\N é', "x": b"\0\xff\\",
         "day": date(2026, 1, 2), "at": datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC),
         "wall": datetime(1, 1, 1), "n": Decimal("-123456789012345678901234567890123.12345"),
         "a": ['"', None, ""], "m": [("x", 1)], "p": {"q": b"hi"}, "v": '{"a": [1, null]}'},
        {"k": 2, "s": "", "x": b"", "a": [], "d": -0.0},
        {"k": 3},
    ]  # fmt: skip
    names = list(rows[0])
    columns = {name: pa.array([row.get(name) for row in rows], kinds.get(name)) for name in names}
    with PostgresSink(server.dsn, table, schema, "k") as sink:
        sink.begin()
        sink.commit(Batch(0, pa.table(columns)))
    first, second, third = sorted(read(server, table), key=lambda row: row["k"])
    assert first == {**rows[0], "m": {"x": 1}, "p": {"q": "aGk="}, "v": {"a": [1, None]}}
    assert second == {name: rows[1].get(name) for name in names}
    assert third == {name: rows[2].get(name) for name in names}


def test_a_commit_stores_rows_positions_and_clock_together(server: Server, table: str) -> None:
    with PostgresSink(server.dsn, table, STOCK, "item") as sink:
        sink.begin()
        assert sink.commit(stock(0, tea=1, rum=2))
        assert sink.commit(stock(1, "rum", "never", tea=5))
    assert contents(server, table) == {"tea": 5}
    with psycopg.connect(server.dsn) as db:
        query = "SELECT batch, positions, clock FROM headwater_sinks WHERE name = %s"
        assert db.execute(query, (table,)).fetchone() == (1, "orders:0=1", 1)


def test_a_row_that_stays_the_same_is_not_written(server: Server, table: str) -> None:
    with PostgresSink(server.dsn, table, STOCK, "item") as sink, psycopg.connect(server.dsn) as db:
        sink.begin()
        sink.commit(stock(0, tea=1, rum=2))
        query = SQL("SELECT item, xmin::text FROM {} ORDER BY item").format(Identifier(table))
        before = dict(db.execute(query).fetchall())
        db.rollback()
        sink.commit(stock(1, tea=1, rum=3))
        after = dict(db.execute(query).fetchall())
    assert [item for item in before if before[item] != after[item]] == ["rum"]


def test_hostile_names_and_a_schema_are_only_names(server: Server) -> None:
    with psycopg.connect(server.dsn) as db:
        db.execute("CREATE SCHEMA IF NOT EXISTS sales")
    with PostgresSink(
        server.dsn, 'sales.x"; DROP', '`a "b"; --` BIGINT, `select` STRING', 'a "b"; --'
    ) as sink:
        sink.begin()
        row = {'a "b"; --': 1, "select": "'; DROP TABLE headwater_sinks; --"}
        assert sink.commit(Batch(0, pa.Table.from_pylist([row])))
        assert not sink.commit(Batch(0, pa.Table.from_pylist([row])))
    assert read(server, 'sales.x"; DROP') == [row]


# Broken connections


def breaking(server: Server, at: str) -> list[str]:
    """Break every connection off when a commit first gets to a point; return where that was."""
    broken: list[str] = []

    def reached(name: str) -> None:
        if name == at and not broken:
            broken.append(name)
            with psycopg.connect(server.dsn, autocommit=True) as db:
                db.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                    "WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
                )

    crash.watch(reached)
    return broken


@pytest.mark.usefixtures("watched")
@pytest.mark.parametrize("at", ["copying", "staged", "rows stored", "before commit"])
def test_a_broken_connection_is_made_anew_and_the_commit_repeated(
    server: Server, table: str, at: str
) -> None:
    with PostgresSink(server.dsn, table, STOCK, "item") as sink:
        sink.begin()
        sink.commit(stock(0, tea=1))
        broken = breaking(server, f"postgres: {at}")
        assert sink.commit(stock(1, tea=2))
        assert broken
        assert sink.commit(stock(2, rum=1))
    assert contents(server, table) == {"tea": 2, "rum": 1}


def test_a_commit_whose_answer_was_lost_is_recognised(
    server: Server, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with PostgresSink(server.dsn, table, STOCK, "item") as sink:
        sink.begin()
        attempt, lost = sink._connection._attempt, []

        def losing(action: Any) -> Any:
            done = attempt(action)
            if not lost:
                lost.append(done)
                raise psycopg.OperationalError("the answer never came")
            return done

        monkeypatch.setattr(sink._connection, "_attempt", losing)
        assert sink.commit(stock(0, tea=1))
        assert lost == [True]
        assert not sink.commit(stock(0, tea=9))
    assert contents(server, table) == {"tea": 1}


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGQUIT], ids=["a restart", "a crash"])
def test_the_server_is_waited_for(server: Server, table: str, how: signal.Signals) -> None:
    with PostgresSink(server.dsn, table, STOCK, "item") as sink:
        sink.begin()
        sink.commit(stock(0, tea=1))
        server.stop(how)
        later = threading.Timer(0.5, server.start)
        later.start()
        assert sink.commit(stock(1, tea=2))
        later.join()
    assert contents(server, table) == {"tea": 2}


def test_a_server_that_does_not_come_back_is_told_after_a_time(server: Server, table: str) -> None:
    with PostgresSink(server.dsn, table, STOCK, "item", retry_timeout="300 milliseconds") as sink:
        sink.begin()
        server.stop()
        try:
            began = time.monotonic()
            with pytest.raises(SinkUnavailable, match="cannot be used"):
                sink.commit(stock(0, tea=1))
            assert time.monotonic() - began < 5
        finally:
            server.start()
        assert sink.commit(stock(0, tea=1))


# What is refused


def test_an_older_runner_is_fenced_and_told_so(server: Server, table: str) -> None:
    with (
        PostgresSink(server.dsn, table, STOCK, "item") as first,
        PostgresSink(server.dsn, table, STOCK, "item") as second,
    ):
        first.begin()
        assert second.begin() == -1
        with pytest.raises(Fenced, match=f'another runner has taken over table "{table}"'):
            first.commit(stock(0, tea=1))
        assert second.commit(stock(0, tea=2))


def test_a_value_that_the_server_cannot_hold_leaves_everything_as_it_was(server: Server, table: str) -> None:
    with PostgresSink(server.dsn, table, STOCK, "item") as sink:
        sink.begin()
        with pytest.raises(RowError, match="a row does not fit table"):
            sink.commit(stock(0, **{"tea": 1, "nul\0": 2}))
        with pytest.raises(RowError, match="is null"):
            sink.commit(Batch(0, pa.table({"item": [None], "count": [1]})))
        unlike = "".join(chr(0x100 + n * 7919 % 20_000) for n in range(9_000))  # no compression helps
        with pytest.raises(RowError, match="a row does not fit table") as caught:
            sink.commit(stock(0, **{unlike: 1}))
        assert "index row" in str(caught.value.detail)
        assert contents(server, table) == {}
        assert sink.commit(stock(0, tea=1))


def test_other_columns_than_before_are_refused(server: Server, table: str) -> None:
    with PostgresSink(server.dsn, table, STOCK, "item") as sink:
        sink.begin()
    with PostgresSink(server.dsn, table, STOCK + ", note STRING", "item") as sink, pytest.raises(SchemaError):
        sink.begin()


def test_what_waiting_does_not_mend_is_told_at_once_and_without_secrets(server: Server, table: str) -> None:
    began = time.monotonic()
    with (
        PostgresSink(server.dsn.replace("/postgres", "/nowhere"), table, STOCK, "item") as sink,
        pytest.raises(SinkRefused, match="does not exist"),
    ):
        sink.begin()
    assert time.monotonic() - began < 5
    with pytest.raises(UsageError) as caught:
        PostgresSink("postgresql//user:secret@host", table, STOCK, "item")
    assert "secret" not in str(caught.value)


def test_a_sink_begins_before_it_commits(server: Server, table: str) -> None:
    with PostgresSink(server.dsn, table, STOCK, "item") as sink, pytest.raises(UsageError, match="not begun"):
        sink.commit(stock(0, tea=1))


# Columns that other names stand in the way of


def test_percent_signs_in_names_are_only_names(server: Server, table: str) -> None:
    name, columns = f"{table}%s", "`it%em` STRING, `discount%` BIGINT, `%(x)s` STRING"
    with (
        PostgresSink(server.dsn, name, columns, "it%em", feed=10) as sink,
        open_views(server.dsn) as views,
    ):
        sink.begin()
        first, second = ({"it%em": "tea", "discount%": n, "%(x)s": "%s"} for n in (5, 6))
        sink.commit(Batch(0, pa.Table.from_pylist([first])))
        sink.commit(Batch(1, pa.Table.from_pylist([second])))
        assert views[name].get("tea") == second
        assert views[name].scan(start="t", order="discount%").to_pylist() == [second]
        assert [(change.old, change.new) for change in views[name].changes()] == [
            (None, first),
            (first, second),
        ]


@pytest.mark.parametrize("columns", [1599, 1600])
def test_a_table_has_as_many_columns_as_the_server_takes(server: Server, table: str, columns: int) -> None:
    schema = ", ".join(f"c{n} SMALLINT" for n in range(columns))
    if columns > 1599:
        with pytest.raises(SchemaError, match="too many columns"):
            PostgresSink(server.dsn, table, schema, "c0")
        return
    row = {f"c{n}": pa.array([n if n < 900 else None], pa.int16()) for n in range(columns)}
    with PostgresSink(server.dsn, table, schema, "c0") as sink:
        sink.begin()
        assert sink.commit(Batch(0, pa.table(row)))
        assert sink.commit(Batch(1, pa.table(row)))


def test_what_no_waiting_mends_stops_at_once(server: Server, table: str) -> None:
    with PostgresSink(server.dsn, table, STOCK, "item") as sink, psycopg.connect(server.dsn) as db:
        sink.begin()
        db.execute(SQL("ALTER TABLE {} RENAME count TO counted").format(Identifier(table)))
        db.commit()
        with pytest.raises(SinkRefused, match="does not exist"):
            sink.commit(stock(0, tea=1))
