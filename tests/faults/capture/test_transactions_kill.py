"""Whole transactions under ``kill -9`` of the capture: a reader beside it never sees a part of one."""

from __future__ import annotations

import os
import random
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

import headwater
from faults.capture.transactions_worker import NAME, opened
from faults.killed_worker import killed_after
from postgres_server import Server

KILLS = int(os.environ.get("FAULT_KILLS", "2"))
SEED = int(os.environ.get("FAULT_SEED", "7"))
WORKER = Path(__file__).with_name("transactions_worker.py")
ACCOUNTS, EACH = 50, 1000


class Ledger:
    """Moves money between accounts; each move has an entry, whose number is how many there are."""

    def __init__(self, connect: Callable[[], Any]):
        self._connect, self._chance = connect, random.Random(SEED)
        self.sizes: list[int] = []
        self._moves = 0
        with closing(connect()) as db, db:
            for name in ("accounts", "entries"):
                db.execute(f"CREATE TABLE {name} (id INTEGER PRIMARY KEY, n INTEGER)")
            for id in range(ACCOUNTS):
                db.execute(f"INSERT INTO accounts VALUES ({id}, {EACH})")  # noqa: S608

    def work(self, transactions: int) -> None:
        """Commit some transactions."""
        with closing(self._connect()) as db:
            for _ in range(transactions):
                moves = self._chance.choice([1, 1, 1, 5, 200])
                for _ in range(moves):
                    self._move(db)
                db.commit()
                self.sizes.append(3 * moves)

    def _move(self, db: Any) -> None:
        one, other = self._chance.sample(range(ACCOUNTS), 2)
        self._moves += 1
        for id, sign in ((one, "-"), (other, "+")):
            db.execute(f"UPDATE accounts SET n = n {sign} 1 WHERE id = {id}")  # noqa: S608
        db.execute(f"INSERT INTO entries VALUES ({self._moves}, 1)")  # noqa: S608


class Reader:
    """Follows the ledger by whole transactions."""

    def __init__(self, url: str):
        self._url, self._next = url, 0
        self.tables: dict[str, dict[int, int]] = {"accounts": {}, "entries": {}}
        self.sizes: list[int] = []

    def check(self) -> None:
        """Read what is new: money is never lost or made, and entries have no gaps."""
        with headwater.open(self._url) as log:
            if f"{NAME}.transactions" not in {topic.name for topic in log.topics()}:
                return
            for whole in headwater.read_transactions(log, NAME, start=self._next):
                self._next = whole.next
                self.sizes += whole.transactions["changes"].to_pylist()
                for topic, rows in self.tables.items():
                    rows |= {row["id"]: row["n"] for row in whole.changes[topic].to_pylist()}
                assert sum(self.tables["accounts"].values()) == ACCOUNTS * EACH
                assert sorted(self.tables["entries"]) == list(range(1, len(self.tables["entries"]) + 1))


@pytest.fixture(params=["sqlite", "postgres"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Ledger, str]]:
    if request.param == "sqlite":
        file = tmp_path / "ledger.db"
        yield Ledger(lambda: sqlite3.connect(file, timeout=60)), f"sqlite:{file}"
        return
    server: Server = request.getfixturevalue("server")
    with psycopg.connect(server.dsn, autocommit=True) as db:
        db.execute("DROP TABLE IF EXISTS accounts, entries")
    yield Ledger(lambda: psycopg.connect(server.dsn)), server.dsn
    headwater.drop_capture(server.dsn, NAME)


@pytest.mark.faults
@pytest.mark.timeout(3600)
def test_no_reader_sees_a_part_of_a_transaction(ledger: tuple[Ledger, str], tmp_path: Path) -> None:
    work, database = ledger
    log = f"file:{tmp_path / 'log'}"
    chance, reader = random.Random(SEED), Reader(log)
    with opened(database, log) as capture:  # from now on every transaction is told
        capture.catch_up()
    for _ in range(KILLS):
        with killed_after(chance, [WORKER, database, log]) as is_due:
            while not is_due():
                work.work(chance.randint(1, 20))
                reader.check()
        reader.check()
    with opened(database, log) as capture:
        capture.catch_up()
    reader.check()
    assert len(reader.tables["entries"]) == sum(work.sizes) // 3
    assert sum(reader.sizes) == sum(work.sizes)
    if not database.startswith("sqlite"):  # which does not tell where transactions end
        assert reader.sizes == work.sizes
    print(f"{database.partition(':')[0]}: {KILLS} kills, {len(work.sizes):,} transactions, none seen in part")
