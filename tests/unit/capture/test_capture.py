"""A capture of an SQLite file: snapshots, the stream, restarts, tables that come later or change."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import headwater
from changes_kit import CAPTURED, CUSTOMERS, Statement, batch, execute, newest
from headwater.capture import capture as captures
from headwater.capture import snapshot
from headwater.capture.capture import Capture
from headwater.capture.change import Delivery, SnapshotChunk, SourceTable, TableChanges, Transactions
from headwater.capture.settings import DEFAULTS, CaptureSettings
from headwater.capture.sqlite.source import SqliteSource
from headwater.capture.state import StateTopic, load
from headwater.capture.writing.captured_table import CapturedTable
from headwater.errors import Fenced, RowError, SourceRefused, SourceUnavailable
from headwater.log import Log
from replayed_source import EmptyTable

INSERT = "INSERT INTO customers VALUES (?, ?)"


def contents(path: Path) -> dict[int, str | None]:
    db = sqlite3.connect(path)
    rows = dict(db.execute("SELECT id, name FROM customers").fetchall())
    db.close()
    return rows


@contextmanager
def capturing(
    path: Path, log: Log, *tables: CapturedTable, settings: CaptureSettings = DEFAULTS
) -> Iterator[Capture]:
    source = SqliteSource(path, "crm")
    with source, Capture(source, log, "crm", tables or [CAPTURED], settings) as capture:
        yield capture


def test_rows_that_are_there_and_changes_after_become_a_table(file: Path, log: Log) -> None:
    execute(file, "INSERT INTO customers VALUES (1, 'a'), (2, 'b')")
    with capturing(file, log) as capture:
        capture.catch_up()
        assert newest(log) == {1: "a", 2: "b"}
        execute(file, "UPDATE customers SET name = 'c' WHERE id = 1", "DELETE FROM customers WHERE id = 2")
        execute(file, "INSERT INTO customers VALUES (3, NULL)")
        capture.catch_up()
    assert newest(log) == contents(file) == {1: "c", 3: None}


def test_it_goes_on_where_it_ended(file: Path, log: Log) -> None:
    for number in range(3):
        execute(file, (INSERT, (number, "a")))
        with capturing(file, log) as capture:
            capture.catch_up()
    assert newest(log) == contents(file)
    assert sum(len(batch) for batch in log.read("customers")) == 3


def test_what_was_not_saved_is_delivered_again_and_stored_once(file: Path, log: Log) -> None:
    with capturing(file, log) as capture:
        capture.catch_up()
        for number in range(5):
            execute(file, (INSERT, (number, "a")))
        capture._saved_at = float("inf")  # as if it had been killed before it could
        while capture.changes < 5:
            capture.step()
    execute(file, "UPDATE customers SET name = 'b' WHERE id = 4")
    with capturing(file, log) as capture:
        capture.catch_up()
    assert newest(log) == contents(file)
    assert sum(len(batch) for batch in log.read("customers")) == 6


def test_what_is_on_its_way_is_saved_soon(file: Path, log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(captures, "MANY", 1)
    monkeypatch.setattr(captures, "SAVE_SECONDS", 0.0)
    with capturing(file, log) as capture:
        capture.catch_up()
        for number in range(5):
            execute(file, (INSERT, (number, "a")))
        while capture.changes < 5:
            capture.step()
        assert load(log, capture.name) == capture.state
    assert newest(log) == contents(file)


def test_a_snapshot_goes_on_behind_its_last_chunk(
    file: Path, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot, "CHUNK_ROWS", 10)
    execute(file, *((INSERT, (number, "a")) for number in range(95)))
    with capturing(file, log) as capture:
        while (
            capture.state.snapshots.get("customers") is None or capture.state.snapshots["customers"].rows < 30
        ):
            capture.step()
    execute(
        file, "DELETE FROM customers WHERE id % 7 = 0", "UPDATE customers SET name = 'b' WHERE id % 5 = 0"
    )
    with capturing(file, log) as capture:
        assert capture.snapshotting == ("customers",)
        capture.catch_up()
        assert capture.state.snapshots["customers"].done
    assert newest(log) == contents(file)
    assert sum(len(batch) for batch in log.read("customers")) < 95 + 40


def test_an_idle_capture_saves_its_state_seldom_and_notices_its_successor(
    file: Path, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(Fenced), capturing(file, log) as capture:
        capture.catch_up()
        saved = sum(len(batch) for batch in log.read("crm.capture"))
        for _ in range(5):
            capture.step(0.01)
        assert sum(len(batch) for batch in log.read("crm.capture")) == saved
        with StateTopic(log, "crm"), pytest.raises(Fenced):
            monkeypatch.setattr(captures, "IDLE_SECONDS", 0.0)
            capture.step(0.01)


def test_a_table_may_come_later(file: Path, log: Log) -> None:
    orders = CapturedTable("orders", "orders", CAPTURED.schema, ("id",))
    execute(
        file, "CREATE TABLE orders (id INTEGER PRIMARY KEY, name TEXT)", "INSERT INTO orders VALUES (7, 'x')"
    )
    with capturing(file, log) as capture:
        capture.catch_up()
    with capturing(file, log, CAPTURED, orders) as capture:
        execute(file, "INSERT INTO customers VALUES (1, 'a')", "INSERT INTO orders VALUES (8, 'y')")
        capture.catch_up()
    assert newest(log, "orders") == {7: "x", 8: "y"}
    assert newest(log) == {1: "a"}


def test_a_table_that_no_longer_fits_stops_and_the_others_go_on(file: Path, log: Log) -> None:
    orders = CapturedTable("orders", "orders", CAPTURED.schema, ("id",))
    execute(file, "CREATE TABLE orders (id INTEGER PRIMARY KEY, name TEXT)")
    with capturing(file, log, CAPTURED, orders) as capture:
        capture.catch_up()
        execute(file, "ALTER TABLE orders RENAME COLUMN name TO title", "INSERT INTO orders VALUES (1, 'x')")
        capture.catch_up()
        execute(file, "INSERT INTO orders VALUES (2, 'y')", "INSERT INTO customers VALUES (1, 'a')")
        capture.catch_up()
        assert 'there is no column "name"' in capture.state.stopped["orders"]
    assert newest(log) == {1: "a"}
    assert 2 not in newest(log, "orders")


def test_a_column_that_is_added_and_not_declared_is_left_out(file: Path, log: Log) -> None:
    with capturing(file, log) as capture:
        capture.catch_up()
        execute(
            file,
            "ALTER TABLE customers ADD COLUMN tier TEXT",
            "INSERT INTO customers VALUES (1, 'a', 'gold')",
        )
        capture.catch_up()
        assert capture.state.stopped == {}
    assert newest(log) == {1: "a"}


def test_a_new_snapshot_mends_what_was_missed_and_deletes_what_is_gone(file: Path, log: Log) -> None:
    execute(file, *((INSERT, (number, "a")) for number in range(6)))
    with capturing(file, log) as capture:
        capture.catch_up()
    with log.producer("customers") as somebody:  # who has no business here
        somebody.send_batch([{"id": 1, "name": "wrong"}, {"id": 99, "name": "wrong"}])
    with StateTopic(log, "crm") as topic:
        saved = topic.load()
        assert saved is not None
        topic.save(saved.with_resnapshot("customers"))
    with capturing(file, log) as capture:
        execute(file, "DELETE FROM customers WHERE id = 2", "UPDATE customers SET name = 'b' WHERE id = 3")
        capture.step()
    with capturing(file, log) as capture:  # it begins anew
        capture.catch_up()
        assert (capture.state.resnapshot, capture.snapshotting) == ((), ())
    assert newest(log) == contents(file)


def test_a_table_that_was_stopped_is_captured_again(file: Path, log: Log) -> None:
    with capturing(file, log) as capture:
        capture.catch_up()
        execute(
            file, "ALTER TABLE customers RENAME COLUMN name TO title", "INSERT INTO customers VALUES (1, 'x')"
        )
        capture.catch_up()
        execute(
            file, "ALTER TABLE customers RENAME COLUMN title TO name", "INSERT INTO customers VALUES (2, 'y')"
        )
        capture.catch_up()
        assert "customers" in capture.state.stopped
        state = capture.state.with_resnapshot("customers")
    with StateTopic(log, "crm") as topic:
        topic.save(state)
    with capturing(file, log) as capture:
        capture.catch_up()
    assert newest(log) == contents(file) == {1: "x", 2: "y"}


def test_a_table_that_is_left_out_for_a_while_is_read_anew(file: Path, log: Log) -> None:
    orders = CapturedTable("orders", "orders", CAPTURED.schema, ("id",))
    execute(
        file,
        "CREATE TABLE orders (id INTEGER PRIMARY KEY, name TEXT)",
        *((INSERT, (n, "a")) for n in range(5)),
    )
    with capturing(file, log) as capture:
        capture.catch_up()
        execute(file, "UPDATE customers SET name = 'b'")
        capture.catch_up()
    with capturing(file, log, orders) as capture:
        execute(file, "DELETE FROM customers WHERE id < 3", "UPDATE customers SET name = 'c'")
        capture.catch_up()
    with capturing(file, log) as capture:
        execute(file, "INSERT INTO customers VALUES (7, 'new')")
        capture.catch_up()
        execute(file, "UPDATE customers SET name = 'd' WHERE id = 4")
        capture.catch_up()
    assert newest(log) == contents(file) == {3: "c", 4: "d", 7: "new"}


def kill(file: Path, log: Log, *tables: CapturedTable) -> None:
    """Let a capture store five changes, and end before it can save its state."""
    with capturing(file, log, *tables) as capture:
        capture.catch_up()
        capture._saved_at = float("inf")
        for number in range(5):
            execute(file, (INSERT, (number, "a")))
        while capture.changes < 5:
            capture.step()


ORDERS = CapturedTable("orders", "orders", CAPTURED.schema, ("id",))


def test_a_table_that_is_left_out_behind_a_kill_loses_no_change_afterwards(file: Path, log: Log) -> None:
    execute(file, "CREATE TABLE orders (id INTEGER PRIMARY KEY, name TEXT)")
    kill(file, log)
    with capturing(file, log, ORDERS) as capture:
        capture.catch_up()
    with capturing(file, log) as capture:
        capture.catch_up()
        execute(file, "UPDATE customers SET name = 'b' WHERE id = 1")
        capture.catch_up()
    assert newest(log) == contents(file)


def test_changes_from_before_a_gap_that_come_again_do_not_hide_what_happened_in_it(
    file: Path, log: Log
) -> None:
    execute(file, "CREATE TABLE orders (id INTEGER PRIMARY KEY, name TEXT)")
    kill(file, log)
    with capturing(file, log, ORDERS):  # and killed at once: its changes come again
        execute(file, "UPDATE customers SET name = 'b' WHERE id = 1", "DELETE FROM customers WHERE id = 2")
    with capturing(file, log) as capture:
        capture.catch_up()
    assert newest(log) == contents(file) == {0: "a", 1: "b", 3: "a", 4: "a"}


def test_a_capture_that_is_dropped_behind_a_kill_loses_no_change_afterwards(file: Path, log: Log) -> None:
    kill(file, log)
    with SqliteSource(file, "crm") as source:
        source.drop()
    with StateTopic(log, "crm") as topic:
        saved = topic.load()
        assert saved is not None
        topic.save(saved.as_dropped())
    with capturing(file, log) as capture:
        capture.catch_up()
        execute(file, "UPDATE customers SET name = 'b' WHERE id = 1")
        capture.catch_up()
    assert newest(log) == contents(file)


def test_a_topic_that_another_has_stood_for_is_read_anew(file: Path, log: Log) -> None:
    for number, topic in enumerate(("customers", "clients", "customers")):
        with capturing(file, log, replace(CAPTURED, topic=topic)) as capture:
            capture.catch_up()
            assert newest(log, topic) == contents(file)
            execute(file, (INSERT, (number, "a")))
            capture.catch_up()
        assert newest(log, topic) == contents(file)


def test_a_capture_whose_source_has_forgotten_it_begins_anew(file: Path, log: Log) -> None:
    execute(file, *((INSERT, (n, "a")) for n in range(4)))
    with capturing(file, log) as capture:
        capture.catch_up()
        execute(file, "UPDATE customers SET name = 'b'")
        capture.catch_up()
    with SqliteSource(file, "crm") as source:
        source.drop()
    execute(file, "DELETE FROM customers WHERE id = 0", "UPDATE customers SET name = 'c' WHERE id = 1")
    with pytest.raises(SourceRefused), capturing(file, log):
        pass
    with StateTopic(log, "crm") as topic:
        saved = topic.load()
        assert saved is not None
        topic.save(saved.as_dropped())
    with capturing(file, log) as capture:
        execute(file, "INSERT INTO customers VALUES (9, 'i')")
        capture.catch_up()
    assert newest(log) == contents(file)


@pytest.mark.parametrize("gone", ["crm.capture", "customers"])
def test_topics_that_are_deleted_are_filled_anew(file: Path, log: Log, gone: str) -> None:
    execute(file, *((INSERT, (n, "a")) for n in range(4)))
    with capturing(file, log) as capture:
        capture.catch_up()
        execute(file, "UPDATE customers SET name = 'b'")
        capture.catch_up()
    log.delete_topic(gone)
    execute(file, "DELETE FROM customers WHERE id = 0")
    with capturing(file, log) as capture:
        capture.catch_up()
        execute(file, "UPDATE customers SET name = 'c' WHERE id = 1")
        capture.catch_up()
    assert newest(log) == contents(file)


def test_a_value_that_does_not_fit_stops_the_capture_or_is_set_aside(file: Path, log: Log) -> None:
    execute(file, "INSERT INTO customers VALUES (1, 'a')", "INSERT INTO customers VALUES (2, x'00ff')")
    with capturing(file, log) as capture, pytest.raises(RowError, match="key \\[2\\]"):
        capture.catch_up()
    with capturing(file, log, settings=CaptureSettings("dead_letter")) as capture:
        capture.catch_up()
        execute(file, "INSERT INTO customers VALUES (3, x'01')", "INSERT INTO customers VALUES (4, 'd')")
        capture.catch_up()
    assert newest(log) == {1: "a", 4: "d"}
    dead = [row for batch in log.read("crm.dead") for row in batch.to_pylist()]
    assert {row["key"] for row in dead} == {"[2]", "[3]"}


def test_what_is_set_aside_is_not_in_the_history(file: Path, log: Log) -> None:
    narrow = replace(CAPTURED, schema=pa.schema({"id": pa.int64(), "name": pa.int64()}), history=True)
    with capturing(file, log, narrow, settings=CaptureSettings("dead_letter")) as capture:
        capture.catch_up()
        execute(file, *((INSERT, row) for row in [(1, "10"), (2, "ten"), (3, "30")]))
        capture.catch_up()
    rows = [row for batch in log.read("customers.changes") for row in batch.to_pylist()]
    assert [(row["id"], row["after"]["name"]) for row in rows] == [(1, 10), (3, 30)]


def test_a_declaration_that_does_not_fit_is_refused_before_anything_is_written(file: Path, log: Log) -> None:
    wrong = replace(CAPTURED, schema=pa.schema({"id": pa.int64(), "surname": pa.string()}))
    with (
        pytest.raises(SourceRefused, match="is not as it is declared") as refused,
        capturing(file, log, wrong),
    ):
        pass
    assert 'there is no column "surname"' in str(refused.value)
    unknown = replace(CAPTURED, table="clients")
    with pytest.raises(SourceRefused, match='has no table "clients"'), capturing(file, log, unknown):
        pass
    assert log.topics() == []


@given(st.randoms(use_true_random=False), st.integers(1, 30))
def test_whatever_happens_the_topic_is_the_table(
    tmp_path_factory: pytest.TempPathFactory, rng: random.Random, steps: int
) -> None:
    path = tmp_path_factory.mktemp("crm") / "crm.db"
    execute(path, "CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT)")
    with pytest.MonkeyPatch.context() as patch, headwater.open("memory:") as log:
        patch.setattr(snapshot, "CHUNK_ROWS", 3)
        patch.setattr(captures, "MANY", rng.choice([1, 3, captures.MANY]))
        while steps > 0:
            with capturing(path, log) as capture:
                if rng.random() < 0.3:
                    capture._saved_at = float("inf")
                for _ in range(rng.randint(1, 6)):
                    execute(path, *(statement(rng) for _ in range(rng.randint(0, 4))))
                    steps -= 1
                    if rng.random() < 0.7:
                        capture.step(0)
        with capturing(path, log) as capture:
            capture.catch_up()
        assert newest(log) == contents(path)


def statement(rng: random.Random) -> Statement:
    id, other, name = rng.randrange(12), rng.randrange(12), rng.choice("abc")
    statements: list[Statement] = [
        ("INSERT OR REPLACE INTO customers VALUES (?, ?)", (id, name)),
        ("INSERT OR IGNORE INTO customers VALUES (?, ?)", (id, name)),
        ("UPDATE customers SET name = ? WHERE id >= ?", (name, id)),
        ("UPDATE OR REPLACE customers SET id = ? WHERE id = ?", (other, id)),
        ("DELETE FROM customers WHERE id = ?", (id,)),
    ]
    return rng.choice(statements)


class Scripted(EmptyTable):
    """A source that delivers what it is given, of an empty table."""

    title = "a script"

    def __init__(self, *deliveries: Delivery, identity: str = "1"):
        self.deliveries, self.identity = list(deliveries), identity

    def identities(self, tables: Iterable[str]) -> Mapping[str, str]:
        return dict.fromkeys(tables, self.identity) if self.identity else {}

    def read(self, timeout: float) -> Delivery:
        return self.deliveries.pop(0) if self.deliveries else Delivery()


def part(first: int, end: int, position: str | None = None, table: SourceTable = CUSTOMERS) -> Delivery:
    """Return some insertions of a transaction that ends at 50: with their numbers as keys."""
    index = np.arange(first, end)
    once = Transactions(("t",), ("50",), np.zeros(1, np.int64))
    rows = batch([(int(number), "a") for number in index])
    none = np.zeros(len(index), np.int64)
    return Delivery((TableChanges(table, none.astype(np.int8), rows, once, none, index),), position)


def scripted(log: Log, *deliveries: Delivery, identity: str = "1") -> Capture:
    """Return a capture that has taken in what it is given, and has saved its state after each."""
    with Capture(Scripted(*deliveries, identity=identity), log, "crm", [CAPTURED]) as capture:
        for _ in deliveries:
            capture.step()
            capture.save()
    return capture


def stored(log: Log) -> list[int]:
    return [row["id"] for part in log.read("customers") for row in part.to_pylist()]


@pytest.mark.parametrize(
    "again",
    [
        [part(0, 2), part(2, 6, "51")],
        [Delivery((), "10"), part(0, 6, "51")],  # the server is on its way to the transaction
        [Delivery((), "10"), part(0, 2), part(2, 5), part(5, 6, "51")],
    ],
)
def test_a_transaction_is_stored_once_wherever_it_is_cut_and_begun_again(
    log: Log, again: list[Delivery]
) -> None:
    scripted(log, part(0, 3))
    for end in range(1, len(again)):
        scripted(log, *again[:end])  # killed in the middle
        assert stored(log) == list(range(len(stored(log))))
    capture = scripted(log, *again)
    assert stored(log) == [0, 1, 2, 3, 4, 5]
    assert (capture.state.position, capture.state.index, capture.state.transaction) == ("51", 0, "")


def test_a_table_that_stops_in_the_middle_of_a_delivery_lets_nothing_be_stored_twice(log: Log) -> None:
    altered = replace(CUSTOMERS, columns=CUSTOMERS.columns[:1])
    both = Delivery((*part(0, 3).changes, *part(3, 4, table=altered).changes), "51")
    with Capture(Scripted(both), log, "crm", [CAPTURED]) as capture:
        capture.step()
        assert "customers" in capture.state.stopped  # and then it is killed
    with Capture(Scripted(part(0, 3, "51")), log, "crm", [CAPTURED]) as capture:
        capture.step()
    assert stored(log) == [0, 1, 2]


def test_a_table_that_was_stopped_does_not_keep_the_others_from_beginning(file: Path, log: Log) -> None:
    orders = CapturedTable("orders", "orders", CAPTURED.schema, ("id",))
    execute(file, "CREATE TABLE orders (id INTEGER PRIMARY KEY, name TEXT)")
    with capturing(file, log, CAPTURED, orders) as capture:
        capture.catch_up()
        execute(file, "ALTER TABLE orders RENAME COLUMN name TO title", "INSERT INTO orders VALUES (1, 'x')")
        capture.catch_up()
    execute(file, "INSERT INTO customers VALUES (1, 'a')")
    with capturing(file, log, CAPTURED, orders) as capture:
        capture.catch_up()
        assert "orders" in capture.state.stopped
    assert newest(log) == {1: "a"}


def test_when_every_table_was_stopped_nothing_begins(log: Log) -> None:
    with Capture(Scripted(identity=""), log, "crm", [CAPTURED]) as capture:
        capture.step()
        capture.save()
    with pytest.raises(SourceRefused, match="no table of a script is captured any more"):
        Capture(Scripted(), log, "crm", [CAPTURED])


def test_a_table_that_is_another_one_of_its_name_is_captured_anew(log: Log) -> None:
    source = Scripted(part(0, 3, "51"))
    with Capture(source, log, "crm", [CAPTURED]) as capture:
        capture.catch_up()
        source.identity, capture._watch_at = "2", 0
        with pytest.raises(SourceUnavailable, match="is another one of that name"):
            capture.step()
    with Capture(Scripted(identity="2"), log, "crm", [CAPTURED]) as capture:
        assert capture.snapshotting == ("customers",)
        capture.catch_up()
    assert newest(log) == {}


def test_a_table_that_has_lost_a_column_before_its_snapshot_is_stopped(log: Log) -> None:
    source = Scripted()
    source.chunk = lambda *_: SnapshotChunk(batch([(1, "a")]).select(["id"]), "00", True)  # type: ignore[method-assign]
    with Capture(source, log, "crm", [CAPTURED]) as capture:
        capture.catch_up()
        assert capture.state.stopped == {"customers": 'there is no column "name"'}
    assert stored(log) == []


def test_a_capture_that_is_begun_anew_stores_what_comes_behind_what_its_topics_have(
    file: Path, log: Log
) -> None:
    letters = CaptureSettings("dead_letter")
    captured = replace(CAPTURED, history=True)
    for number in range(3):
        with capturing(file, log, captured, settings=letters) as capture:
            capture.catch_up()
            execute(file, (INSERT, (2 * number, "a")), (INSERT, (2 * number + 1, b"odd")))
            capture.catch_up()
        log.delete_topic("crm.capture")
    assert set(newest(log)) == {0, 2, 4}
    aside = [row for batch in log.read("crm.dead") for row in batch.to_pylist()]
    assert {row["key"] for row in aside if row["operation"] == "insert"} == {"[1]", "[3]", "[5]"}
    after = [row["id"] for batch in log.read("customers.changes") for row in batch.to_pylist()]
    assert after == [0, 2, 4]


def test_a_topic_that_was_deleted_is_filled_anew(file: Path, log: Log) -> None:
    for number in range(3):
        execute(file, (INSERT, (number, "a")))
        with capturing(file, log) as capture:
            capture.catch_up()
            execute(file, (INSERT, (10 + number, "b")))
            capture.catch_up()
        assert newest(log) == contents(file)
        log.delete_topic("customers")


def test_a_capture_that_is_begun_anew_deletes_what_is_gone(file: Path, log: Log) -> None:
    execute(file, "INSERT INTO customers VALUES (1, 'a'), (2, 'b')")
    with capturing(file, log) as capture:
        capture.catch_up()
    log.delete_topic("crm.capture")
    execute(file, "DELETE FROM customers WHERE id = 1")
    with capturing(file, log) as capture:
        capture.catch_up()
    assert newest(log) == contents(file) == {2: "b"}
