"""PostgreSQL captured onto a real broker: tables with their history, outbox events, whole transactions."""

# ruff: noqa: S608  # statements of an application, made of numbers

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import Any

import psycopg
import pyarrow as pa
import pytest

from headwater import topic as topics
from headwater.capture.capture import Capture
from headwater.capture.outbox.captured_outbox import CapturedOutbox
from headwater.capture.postgres.source import PostgresSource
from headwater.capture.settings import CaptureSettings
from headwater.capture.transactions.whole_transactions import read_transactions
from headwater.capture.writing.captured_table import CapturedTable
from headwater.log import Log

ACCOUNTS = pa.schema([("id", pa.int64()), ("n", pa.int64())])
EVENT = "id BIGINT, item STRING, committed_at TIMESTAMP"


@pytest.fixture
def db(database: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("CREATE TABLE accounts (id BIGINT PRIMARY KEY, n BIGINT)")
        connection.execute("CREATE TABLE outbox (id BIGINT PRIMARY KEY, kind TEXT, payload JSON)")
        connection.execute("INSERT INTO accounts SELECT n, 100 FROM generate_series(0, 3) n")
        yield connection


class Shop:
    """A capture of accounts and an outbox, which can be begun again and again."""

    def __init__(self, database: str, log: Log, name: str):
        self._database, self.log, self.name = database, log, name
        self.accounts, self.orders = f"{name}.accounts", f"{name}.orders"

    @contextmanager
    def capturing(self) -> Iterator[Capture]:
        accounts = CapturedTable("accounts", self.accounts, ACCOUNTS, ("id",), history=True)
        declared = replace(topics.create("orders", EVENT, event_time="committed_at"), name=self.orders)
        outbox = CapturedOutbox("outbox", declared, "payload", ("kind",), delete=True)
        settings = CaptureSettings("dead_letter", transactions=True)
        source = PostgresSource(self._database, self.name)
        with closing(source), Capture(source, self.log, self.name, [accounts, outbox], settings) as running:
            yield running

    def capture(self) -> None:
        with self.capturing() as running:
            running.catch_up()

    def capture_and_forget(self) -> None:
        """Store what is there, and end without having saved how far that is, as a kill does."""
        with self.capturing() as running:
            running.save = lambda: None  # type: ignore[method-assign]
            end = running._source.end()
            while not running._source.passed(running.state.position, end):
                running.step()

    def rows(self, topic: str) -> list[dict[str, Any]]:
        return [row for part in self.log.read(topic, meta=True) for row in part.to_pylist()]


@pytest.fixture
def shop(database: str, kafka: Log, name: str) -> Shop:
    return Shop(database, kafka, name)


def sell(db: psycopg.Connection, order: int, payer: int, payee: int) -> None:
    """Move money and tell of it, in one transaction."""
    with db.transaction():
        db.execute(f"UPDATE accounts SET n = n - 1 WHERE id = {payer}")
        db.execute(f"UPDATE accounts SET n = n + 1 WHERE id = {payee}")
        db.execute(f'INSERT INTO outbox VALUES ({order}, \'sold\', \'{{"id": {order}, "item": "tea"}}\')')


def test_each_event_and_each_transaction_is_told_once_whatever_is_begun_again(
    db: psycopg.Connection, shop: Shop
) -> None:
    sell(db, 0, 0, 1)  # which a snapshot finds
    shop.capture()
    for number in range(1, 9):
        sell(db, number, number % 4, (number + 1) % 4)
        if number % 3 == 0:
            shop.capture_and_forget()
    db.execute("INSERT INTO outbox VALUES (99, 'odd', '[1]')")  # no event
    shop.capture_and_forget()
    shop.capture()

    events = shop.rows(shop.orders)
    assert [row["id"] for row in events] == list(range(9))
    headers = {name: value.decode() for name, value in events[-1]["_headers"]}
    assert (headers["row"], headers["kind"], headers["op"]) == ('{"id":8}', "sold", "insert")
    assert [row["key"] for row in shop.rows(f"{shop.name}.dead")] == ["[99]"]
    assert db.execute("SELECT id FROM outbox").fetchall() == [(99,)]  # the others are told, and deleted
    assert len(shop.rows(f"{shop.accounts}.changes")) == 16

    balances, told = dict[int, int](), list[str]()
    for whole in read_transactions(shop.log, shop.name):
        told += whole.transactions["transaction"].to_pylist()
        for row in whole.changes[shop.accounts].to_pylist():
            balances[row["id"]] = row["n"]
        assert sum(balances.values()) == 400  # no transaction is seen in part
    assert len(told) == len(set(told))
    assert balances == dict(db.execute("SELECT id, n FROM accounts").fetchall())


def test_whole_transactions_are_read_on_where_a_reader_was(db: psycopg.Connection, shop: Shop) -> None:
    shop.capture()
    sell(db, 1, 0, 1)
    shop.capture()
    [first] = read_transactions(shop.log, shop.name)
    assert first.transactions["changes"].to_pylist() == [3]
    sell(db, 2, 2, 3)
    shop.capture()
    later = list(read_transactions(shop.log, shop.name, start=first.next))
    events = [row["id"] for each in later for row in each.changes[shop.orders].to_pylist()]
    assert events == [2]
