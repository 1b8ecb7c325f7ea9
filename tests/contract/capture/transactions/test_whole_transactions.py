"""Readers who ask for whole transactions see them whole or not at all, whichever database they are of."""

# ruff: noqa: S608  # statements of an application, made of numbers

from __future__ import annotations

import itertools
import random
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import headwater
from headwater.capture import snapshot
from headwater.capture.capture import Capture
from headwater.capture.settings import CaptureSettings
from headwater.capture.transactions.whole_transactions import WholeTransactions, read_transactions
from headwater.capture.writing.captured_table import CapturedTable
from headwater.errors import UnknownTopic
from headwater.log import Log
from source_kit import Database

COLUMNS = pa.schema([("id", pa.int64()), ("n", pa.int64())])
ACCOUNTS = CapturedTable("accounts", "accounts", COLUMNS, ("id",), history=True)
ENTRIES = CapturedTable("entries", "entries", COLUMNS, ("id",))
TOLD = CaptureSettings(transactions=True)


@pytest.fixture
def bank(application: Database) -> Database:
    for name in ("accounts", "entries"):
        application.execute(f"CREATE TABLE {name} (id INTEGER PRIMARY KEY, n INTEGER)")
    return application


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    with headwater.open(f"file:{tmp_path / 'log'}") as opened:
        yield opened


@contextmanager
def capturing(bank: Database, log: Log) -> Iterator[Capture]:
    source = bank.source("bank")
    with closing(source), Capture(source, log, "bank", [ACCOUNTS, ENTRIES], TOLD) as running:
        yield running


def capture(bank: Database, log: Log) -> None:
    with capturing(bank, log) as running:
        running.catch_up()


def told(log: Log) -> list[dict[str, Any]]:
    return [row for part in log.read("bank.transactions") for row in part.to_pylist()]


class Reader:
    """Follows both tables by whole transactions, and can be asked what they hold."""

    def __init__(self, log: Log):
        self._log, self._next = log, 0
        self.tables: dict[str, dict[int, int]] = {"accounts": {}, "entries": {}}

    def read(self) -> list[WholeTransactions]:
        found = list(read_transactions(self._log, "bank", start=self._next))
        for each in found:
            self._next = each.next
            for topic in self.tables:
                for row in each.changes[topic].to_pylist():
                    self.tables[topic].pop(row["id"], None)
                    if not row["_deleted"]:
                        self.tables[topic][row["id"]] = row["n"]
        return found


def test_a_transaction_is_told_when_all_of_it_is_stored(bank: Database, log: Log) -> None:
    capture(bank, log)
    assert told(log) == []
    bank.transaction(
        "INSERT INTO accounts VALUES (1, 10)",
        "INSERT INTO entries VALUES (1, 1)",
        "UPDATE accounts SET n = 11",
        "INSERT INTO entries VALUES (2, 1)",
        "DELETE FROM entries WHERE id = 1",
    )
    capture(bank, log)
    [row] = told(log)
    assert (row["changes"], dict(row["topics"])) == (5, {"accounts": 2, "entries": 3})
    ends = {topic: dict(offsets) for topic, offsets in row["ends"]}
    assert ends == {"accounts": {0: 2}, "accounts.changes": {0: 2}, "entries": {0: 3}}
    [record] = [each for part in log.read("accounts", 0, 1, meta=True) for each in part.to_pylist()]
    headers = {name: value.decode() for name, value in record["_headers"]}
    assert (headers["transaction"], headers["position"]) == (row["transaction"], row["position"])
    assert record["committed_at"] == row["committed_at"]
    bank.execute("INSERT INTO accounts VALUES (2, 10)")
    capture(bank, log)
    capture(bank, log)
    assert [dict(row["topics"]) for row in told(log)] == [{"accounts": 2, "entries": 3}, {"accounts": 1}]


def test_whole_transactions_are_read_and_read_on(bank: Database, log: Log) -> None:
    with pytest.raises(UnknownTopic, match="no topic of transactions"):
        list(read_transactions(log, "bank"))
    bank.execute("INSERT INTO accounts VALUES (1, 10)")  # which a snapshot finds
    capture(bank, log)
    reader = Reader(log)
    assert reader.read() == []
    bank.transaction("INSERT INTO accounts VALUES (2, 20)", "INSERT INTO entries VALUES (1, 2)")
    capture(bank, log)
    [first] = reader.read()
    assert first.transactions["changes"].to_pylist() == [2]
    assert reader.tables == {"accounts": {1: 10, 2: 20}, "entries": {1: 2}}
    bank.execute("DELETE FROM accounts WHERE id = 1")
    capture(bank, log)
    [second] = reader.read()
    assert {topic: len(rows) for topic, rows in second.changes.items()} == {
        "accounts": 1,
        "accounts.changes": 1,
        "entries": 0,
    }
    assert reader.tables["accounts"] == {2: 20}


def test_tables_that_are_emptied_are_part_of_their_transaction(bank: Database, log: Log) -> None:
    capture(bank, log)
    bank.transaction("INSERT INTO accounts VALUES (1, 10)", "INSERT INTO entries VALUES (1, 1)")
    empty = "DELETE FROM accounts" if "sqlite" in type(bank).__name__.lower() else "TRUNCATE TABLE accounts"
    bank.execute(empty)
    bank.transaction("INSERT INTO accounts VALUES (2, 20)")
    capture(bank, log)
    reader = Reader(log)
    reader.read()
    assert reader.tables == {"accounts": {2: 20}, "entries": {1: 1}}
    assert sum(row["changes"] for row in told(log)) == 4


def test_a_large_transaction_is_seen_when_it_is_whole(bank: Database, log: Log) -> None:
    """It comes in several deliveries, and is cut off in its middle, by a kill too."""
    capture(bank, log)
    bank.transaction("INSERT INTO accounts VALUES (-1, 0)")
    rows = 120_000
    many = "WITH RECURSIVE s(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < {0}) SELECT i, 7 FROM s"
    if "mariadb" in type(bank).__name__.lower():
        many = "SELECT seq, 7 FROM seq_1_to_{0}"
    bank.transaction(f"INSERT INTO accounts {many.format(rows)}", f"INSERT INTO entries {many.format(1000)}")
    bank.transaction("INSERT INTO accounts VALUES (-2, 0)")
    reader, steps = Reader(log), 0
    for killed in (1, 2, 3, 0):
        with capturing(bank, log) as running:
            end = running._source.end()
            for _ in range(killed or 1000):
                running.step()
                steps += 1
                reader.read()
                found = len([id for id in reader.tables["accounts"] if id > 0])
                assert (found, len(reader.tables["entries"])) in ((0, 0), (rows, 1000))
                if running._source.passed(running.state.position, end):
                    break
            if killed == 2:  # it is remembered how far in the middle
                running.save()
    reader.read()
    assert len(reader.tables["accounts"]) == rows + 2
    totals = [dict(row["topics"]).get("accounts", 0) for row in told(log)]
    if "sqlite" in type(bank).__name__.lower():  # which does not tell where a transaction ends
        assert max(totals) >= rows
    else:
        assert totals == [1, rows, 1]
    assert steps > 3


def test_no_reader_sees_a_part_whenever_the_capture_is_killed(
    bank: Database, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot, "CHUNK_ROWS", 7)
    bank.execute(*(f"INSERT INTO accounts VALUES ({id}, 100)" for id in range(20)))
    with capturing(bank, log) as running:
        running.catch_up()
    stop, moved = threading.Event(), list[int]()
    writer = threading.Thread(target=move, args=(bank, moved, stop))
    writer.start()
    chance, reader = random.Random(3), Reader(log)
    try:
        for number in range(12):
            with capturing(bank, log) as running:
                if number % 2:  # all is stored and not remembered, as behind a kill
                    monkeypatch.setattr(running, "save", lambda: None)
                for _ in range(chance.randint(1, 10)):
                    running.step(0.02)
                    check(reader)
    finally:
        stop.set()
        writer.join()
    capture(bank, log)
    check(reader)
    assert sorted(reader.tables["accounts"].items()) == bank.rows("SELECT id, n FROM accounts ORDER BY id")
    rows = told(log)
    assert len({row["position"] for row in rows}) == len(rows)
    if "sqlite" not in type(bank).__name__.lower():
        assert [row["changes"] for row in rows] == moved


def check(reader: Reader) -> None:
    """Money is moved, not made, and each move has an entry."""
    for each in reader.read():
        assert each.transactions.num_rows
    accounts = reader.tables["accounts"]
    assert sum(accounts.values()) == 100 * len(accounts)
    assert len(accounts) in (0, 20)
    entries = reader.tables["entries"]
    assert sum(entries.values()) == sum(range(1, len(entries) + 1))


def move(bank: Database, moved: list[int], stop: threading.Event) -> None:
    """Move money about in transactions, each with its entry, some large ones among them."""
    chance, number = random.Random(5), itertools.count(1)
    with closing(bank.connect()) as db:
        while not stop.is_set() and len(moved) < 300:
            db.execute("BEGIN")
            times = chance.choice([1, 1, 1, 3, 20])
            for _ in range(times):
                one, other = chance.sample(range(20), 2)
                db.execute(f"UPDATE accounts SET n = n - 1 WHERE id = {one}")
                db.execute(f"UPDATE accounts SET n = n + 1 WHERE id = {other}")
                next_ = next(number)
                db.execute(f"INSERT INTO entries VALUES ({next_}, {next_})")
            db.execute("COMMIT")
            moved.append(3 * times)
            stop.wait(0.003)


def test_changes_that_were_told_before_a_kill_are_not_told_again_with_those_after(
    bank: Database, log: Log
) -> None:
    with capturing(bank, log) as running:
        running.catch_up()
        running._saved_at = float("inf")  # as if it had been killed before it could
        bank.execute("INSERT INTO accounts VALUES (1, 1), (2, 2)")
        while running.changes < 2:
            running.step()
        running._flush()
    bank.execute("INSERT INTO accounts VALUES (3, 3)")
    capture(bank, log)
    assert [row["changes"] for row in told(log)] == [2, 1]
    assert [len(whole.changes["accounts"]) for whole in read_transactions(log, "bank")] in ([3], [2, 1])


def test_a_topic_that_was_deleted_and_filled_anew_is_read_from_its_beginning(
    bank: Database, log: Log
) -> None:
    capture(bank, log)
    for number in range(3):
        bank.execute(
            f"INSERT INTO accounts VALUES ({number}, 1)", f"INSERT INTO entries VALUES ({number}, 1)"
        )
        capture(bank, log)
    [*_, last] = read_transactions(log, "bank")
    log.delete_topic("accounts")
    capture(bank, log)
    bank.execute("INSERT INTO accounts VALUES (7, 1)")
    capture(bank, log)
    found = [row["id"] for whole in read_transactions(log, "bank", start=last.next)
             for row in whole.changes["accounts"].to_pylist()]  # fmt: skip
    assert sorted(found) == [0, 1, 2, 7]
    first = next(read_transactions(log, "bank"))
    assert first.changes["accounts"].num_rows in (0, 4)  # nothing of another topic, unless told together
