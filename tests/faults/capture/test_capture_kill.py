"""A capture under ``kill -9``, of itself and of its database, while transactions go on.

Every change has a version of its own, so what was lost or is there twice has a number.
"""

from __future__ import annotations

import os
import random
import signal
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

import headwater
from faults.capture.capture_worker import opened
from faults.killed_worker import killed_after
from postgres_server import Server

KILLS = int(os.environ.get("FAULT_KILLS", "2"))
SEED = int(os.environ.get("FAULT_SEED", "7"))
WORKER = Path(__file__).with_name("capture_worker.py")
KEYS = 300
TABLE = "CREATE TABLE accounts (id BIGINT PRIMARY KEY, version BIGINT, note TEXT)"


class Bank:
    """An application that moves accounts about, and knows what was committed."""

    def __init__(self, connect: Callable[[], Any], mark: str):
        self._connect, self._mark = connect, mark
        self._chance = random.Random(SEED)
        self._version = 0
        self.rows: dict[int, tuple[int, str]] = {}
        self.written: set[int] = set()
        """The versions that were committed since the capture began."""

    def fill(self) -> None:
        """Write what is there before anything is captured."""
        with closing(self._connect()) as db, db:
            db.execute(TABLE)
            for id in range(0, KEYS, 2):
                self._write(db, self.rows, id)

    def work(self, transactions: int) -> None:
        """Commit some transactions, some of which are rolled back; a database that dies leaves one open."""
        with closing(self._connect()) as db:
            for _ in range(transactions):
                rows, before = dict(self.rows), self._version
                for _ in range(self._chance.choice([1, 1, 1, 3, 40])):
                    self._change(db, rows)
                if self._chance.random() < 0.1:
                    db.rollback()
                    continue
                db.commit()
                self.rows = rows
                self.written |= set(range(before + 1, self._version + 1))

    def _change(self, db: Any, rows: dict[int, tuple[int, str]]) -> None:
        id = self._chance.randrange(KEYS)
        if id in rows and self._chance.random() < 0.2:
            self._execute(db, "DELETE FROM accounts WHERE id = ?", id)
            del rows[id]
        else:
            self._write(db, rows, id)

    def _write(self, db: Any, rows: dict[int, tuple[int, str]], id: int) -> None:
        self._version += 1
        note = self._chance.choice("abc") * self._chance.choice([1, 10, 500])
        if id in rows:
            self._execute(
                db, "UPDATE accounts SET version = ?, note = ? WHERE id = ?", self._version, note, id
            )
        else:
            self._execute(db, "INSERT INTO accounts VALUES (?, ?, ?)", id, self._version, note)
        rows[id] = (self._version, note)

    def _execute(self, db: Any, statement: str, *values: object) -> None:
        db.execute(statement.replace("?", self._mark), values)


@pytest.fixture(params=["sqlite", "postgres"])
def bank(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Bank, str, Server | None]]:
    if request.param == "sqlite":
        file = tmp_path / "bank.db"
        bank = Bank(lambda: sqlite3.connect(file, timeout=60), "?")
        bank.fill()
        yield bank, f"sqlite:{file}", None
        return
    server: Server = request.getfixturevalue("server")
    with psycopg.connect(server.dsn, autocommit=True) as db:
        db.execute("DROP TABLE IF EXISTS accounts")
    bank = Bank(lambda: psycopg.connect(server.dsn), "%s")
    bank.fill()
    yield bank, server.dsn, server
    headwater.drop_capture(server.dsn, "bank")


@pytest.mark.faults
@pytest.mark.timeout(3600)
def test_no_change_is_lost_or_repeated(bank: tuple[Bank, str, Server | None], tmp_path: Path) -> None:
    work, database, server = bank
    log = f"file:{tmp_path / 'log'}"
    chance = random.Random(SEED)
    with opened(database, log) as capture:  # from now on every change is in the history
        capture.step(0)
    for number in range(KILLS):
        with killed_after(chance, [WORKER, database, log]) as is_due:
            while not is_due():
                work.work(chance.randint(1, 20))
            if server is not None and number % 5 == 1:
                server.stop(signal.SIGQUIT)
                server.start()
                work.work(5)
    with opened(database, log) as capture:
        capture.catch_up()
    check(work, log)
    print(f"{database.partition(':')[0]}: {KILLS} kills, {len(work.written):,} changes, all there once")


def check(work: Bank, url: str) -> None:
    """Compare the topics with what was committed."""
    rows: dict[int, tuple[int, str]] = {}
    with headwater.open(url) as log:
        for row in (row for batch in log.read("accounts") for row in batch.to_pylist()):
            rows.pop(row["id"], None)
            if not row["_deleted"]:
                rows[row["id"]] = (row["version"], row["note"])
        history = [row for batch in log.read("accounts.changes") for row in batch.to_pylist()]
    assert rows == work.rows
    versions = [row["after"]["version"] for row in history if row["operation"] != "delete"]
    assert len(versions) == len(set(versions)), "a change is there twice"
    assert set(versions) == work.written
    assert versions == sorted(versions), "changes are not in the order of their commits"
