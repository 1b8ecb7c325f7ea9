"""MariaDB captured: order, altered tables, restarts, and what is refused."""

# ruff: noqa: S608  # statements of a test's own

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from changes_kit import CAPTURED, newest
from headwater.capture.change import DELETE, INSERT, UPDATE, TableChanges, Truncation
from headwater.capture.mysql import source as sources
from headwater.capture.mysql.source import MySqlSource
from headwater.capture.opening import open_capture
from headwater.errors import SourceRefused, SourceUnavailable, UsageError
from headwater.log.open import open as open_log
from mariadb_server import Server
from source_kit import Replica, drain, snapshot, told

T = "CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(40))"


def everything(source: MySqlSource, position: str) -> list[Any]:
    found: list[Any] = []
    drain(source, lambda delivery: found.extend(delivery.changes), position)
    return found


def test_an_update_comes_with_the_row_before(capture: Any, execute: Any) -> None:
    execute(T, "INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    source = capture()
    position = source.begin(["t"], None)
    execute("BEGIN", "UPDATE t SET name = 'c'", "DELETE FROM t WHERE id = 2", "COMMIT")  # delivered at once
    (changes,) = everything(source, position)
    assert list(changes.operation) == [UPDATE, UPDATE, DELETE]
    assert changes.before.column("name").to_pylist() == ["a", "b", "c"]
    assert changes.rows.column("name").to_pylist() == ["c", "c", "c"]


def test_a_transaction_is_delivered_in_parts_that_go_on(
    capture: Any, execute: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "MOST_ROWS", 5)
    execute(T)
    source = capture()
    begun = source.begin(["t"], None)
    execute("BEGIN", *(f"INSERT INTO t VALUES ({n}, 'a')" for n in range(12)), "COMMIT")
    deliveries = [source.read(5.0) for _ in range(3)]
    parts = [delivery.changes[0] for delivery in deliveries]
    assert [list(each.index) for each in parts] == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9], [10, 11]]
    assert len({each.transactions.id for each in parts}) == 1
    assert [delivery.position is None for delivery in deliveries[:2]] == [True, True]
    assert deliveries[2].position is not None and source.passed(deliveries[2].position, begun)
    assert {each.transactions.position for each in parts} == {parts[0].transactions.position}


def test_a_stream_that_breaks_goes_on_in_the_middle_of_a_transaction(
    capture: Any, execute: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "MOST_ROWS", 5)
    execute(T)
    source = capture()
    source.begin(["t"], None)
    execute(
        "BEGIN",
        *(f"INSERT INTO t VALUES ({n}, 'a')" for n in range(8)),
        "COMMIT",
        "INSERT INTO t VALUES (9, 'b')",
    )
    first = source.read(5.0).changes[0]
    for row in execute("SHOW PROCESSLIST"):
        if row[4] == "Binlog Dump":
            execute(f"KILL {row[0]}")
    found = list(first.rows.column("id").to_pylist())
    while 9 not in found:
        try:
            for each in source.read(0.5).changes:
                found += each.rows.column("id").to_pylist()
        except SourceUnavailable:
            continue
    assert found == [0, 1, 2, 3, 4, 5, 6, 7, 9]


def test_changes_of_other_databases_move_the_position(capture: Any, execute: Any) -> None:
    execute(T)
    source = capture()
    position = source.begin(["t"], None)
    execute(
        "CREATE DATABASE IF NOT EXISTS elsewhere", "CREATE OR REPLACE TABLE elsewhere.t (id INT PRIMARY KEY)"
    )
    execute("INSERT INTO elsewhere.t VALUES (1)")
    assert everything(source, position) == []
    execute("DROP DATABASE elsewhere")
    assert everything(source, position) == []


# Tables that are altered


@pytest.mark.parametrize(
    "statement", ["TRUNCATE TABLE t", "truncate t", "DROP TABLE t", "CREATE OR REPLACE " + T[7:]]
)
def test_a_table_that_is_emptied_is_truncated(capture: Any, execute: Any, statement: str) -> None:
    execute(T, "INSERT INTO t VALUES (1, 'a')")
    source = capture()
    position = source.begin(["t"], None)
    execute("INSERT INTO t VALUES (2, 'b')", statement)
    if statement.startswith("DROP"):
        execute(T)
    execute("INSERT INTO t VALUES (3, 'c')")
    found = everything(source, position)
    assert [type(each) for each in found] == [TableChanges, Truncation, TableChanges]
    assert found[1].table.key == ("id",)
    assert found[2].rows.column("id").to_pylist() == [3]


def test_columns_come_and_go(capture: Any, execute: Any) -> None:
    execute(T)
    source = capture()
    position = source.begin(["t"], None)
    execute(
        "INSERT INTO t VALUES (1, 'a')",
        "ALTER TABLE t ADD COLUMN n INT UNSIGNED",
        "INSERT INTO t VALUES (2, 'b', 7)",
    )
    execute("ALTER TABLE t DROP COLUMN name, CHANGE n m BIGINT", "INSERT INTO t VALUES (3, 8)")
    found = everything(source, position)
    assert [[column.name for column in each.table.columns] for each in found] == [
        ["id", "name"],
        ["id", "name", "n"],
        ["id", "m"],
    ]
    assert [each.rows.to_pylist() for each in found] == [
        [{"id": 1, "name": "a"}],
        [{"id": 2, "name": "b", "n": 7}],
        [{"id": 3, "m": 8}],
    ]


def test_create_table_from_a_query_is_one_transaction(capture: Any, execute: Any) -> None:
    execute(T, "INSERT INTO t VALUES (1, 'a')")
    source = capture()
    position = source.begin(["t"], None)
    execute("CREATE TABLE u AS SELECT * FROM t", "INSERT INTO t VALUES (2, 'b')")
    assert [row for _, _, row in told(source, position)] == [(2, "b")]


# Going on


def test_a_server_that_was_restarted_goes_on(mariadb: Server, capture: Any, execute: Any) -> None:
    execute(T)
    source = capture()
    position = source.begin(["t"], None)
    execute("INSERT INTO t VALUES (1, 'a')")
    position = drain(source, lambda _: None, position)
    mariadb.stop(signal.SIGKILL)
    with pytest.raises(SourceUnavailable) as away:
        source.read(1.0)
    assert not isinstance(away.value, SourceRefused)
    mariadb.start()
    with mariadb.connect(source._address.database) as db:
        db.cursor().execute("INSERT INTO t VALUES (2, 'b')")
    assert [row for _, _, row in told(source, position)] == [(2, "b")]


def test_a_position_goes_on_over_files_of_the_binlog(capture: Any, execute: Any) -> None:
    execute(T)
    source = capture()
    position = source.begin(["t"], None)
    execute("INSERT INTO t VALUES (1, 'a')", "FLUSH BINARY LOGS", "INSERT INTO t VALUES (2, 'b')")
    assert [(op, row[0]) for _, op, row in told(source, position)] == [(INSERT, 1), (INSERT, 2)]
    again = capture()
    again.begin(["t"], position)
    assert [row[0] for _, _, row in told(again, position)] == [1, 2]


def test_a_snapshot_has_what_is_there(capture: Any, execute: Any) -> None:
    execute(T, "INSERT INTO t VALUES " + ", ".join(f"({n}, 'n{n}')" for n in range(50)))
    source, replica = capture(), Replica()
    snapshot(source, replica, "t", source.begin(["t"], None))
    assert len(replica.rows("t")) == 50


def test_a_position_at_the_beginning_of_a_file_is_known_again(capture: Any, execute: Any) -> None:
    execute(T, "FLUSH BINARY LOGS")
    position = capture().begin(["t"], None)
    assert capture().begin(["t"], position) == position


def test_a_capture_fills_a_topic_and_goes_on(url: str, execute: Any, tmp_path: Path) -> None:
    execute("CREATE TABLE customers (id BIGINT PRIMARY KEY, name VARCHAR(40))")
    execute("INSERT INTO customers VALUES (1, 'a'), (2, 'b')")
    log = f"file:{tmp_path / 'log'}"
    statements = [
        ["UPDATE customers SET name = 'c' WHERE id = 1"],
        ["TRUNCATE TABLE customers", "INSERT INTO customers VALUES (3, 'd'), (4, 'e')"],
        ["UPDATE customers SET id = 5 WHERE id = 3", "DELETE FROM customers WHERE id = 4"],
    ]
    for each in statements:
        with open_capture(url, log, "crm", [CAPTURED]) as capture:
            capture.catch_up()
            execute(*each)
            capture.catch_up()
        with open_log(log) as opened:
            assert newest(opened) == dict(execute("SELECT id, name FROM customers"))


# What is refused


@pytest.mark.parametrize(
    ("changed", "back", "match"),
    [
        ("SET SESSION binlog_format = 'STATEMENT'", "SET SESSION binlog_format = 'ROW'", "statement"),
        (
            "SET SESSION binlog_row_image = 'MINIMAL'",
            "SET SESSION binlog_row_image = 'FULL'",
            "parts of its rows",
        ),
    ],
)
def test_a_connection_that_tells_less_is_noticed(
    capture: Any, execute: Any, changed: str, back: str, match: str
) -> None:
    execute(T, "INSERT INTO t VALUES (1, 'a')")
    source = capture()
    position = source.begin(["t"], None)
    execute(changed, "UPDATE t SET name = 'b'", back)
    with pytest.raises(SourceRefused) as refused:
        everything(source, position)
    assert match in str(refused.value.detail)


def test_a_distributed_transaction_is_refused(capture: Any, execute: Any) -> None:
    execute(T)
    source = capture()
    position = source.begin(["t"], None)
    execute(
        "XA START 'q'", "INSERT INTO t VALUES (1, 'a')", "XA END 'q'", "XA PREPARE 'q'", "XA ROLLBACK 'q'"
    )
    with pytest.raises(SourceRefused) as refused:
        everything(source, position)
    assert "XA" in str(refused.value.detail)


def test_a_server_that_was_made_anew_is_noticed(capture: Any, execute: Any) -> None:
    execute(T)
    source = capture()
    source.begin(["t"], None)
    execute("INSERT INTO t VALUES (1, 'a')")
    position = source.end()
    source.close()
    ahead = position.split("@")[0].rpartition("-")
    with pytest.raises(SourceRefused, match="from where it was"):
        capture().begin(["t"], f"{ahead[0]}-{int(ahead[2]) + 1000}")
    gtids, place = position.split("@")
    before = f"{ahead[0]}-{int(ahead[2]) - 1}"
    with pytest.raises(SourceRefused) as refused:
        capture().begin(["t"], f"{before}@{place}")
    assert "other transactions" in str(refused.value.detail)
    assert capture().begin(["t"], gtids) == gtids


def test_reading_before_the_beginning_is_a_mistake(capture: Any) -> None:
    with pytest.raises(UsageError, match="begun"):
        capture().read(0.1)
