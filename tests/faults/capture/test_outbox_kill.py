"""An outbox under ``kill -9`` of its capture and its database: each event has a number, and is told once."""

from __future__ import annotations

import itertools
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
from faults.capture.outbox_worker import NAME, opened
from faults.killed_worker import killed_after
from postgres_server import Server

KILLS = int(os.environ.get("FAULT_KILLS", "2"))
SEED = int(os.environ.get("FAULT_SEED", "7"))
WORKER = Path(__file__).with_name("outbox_worker.py")
TABLE = "CREATE TABLE outbox (id INTEGER PRIMARY KEY, payload TEXT)"


class Till:
    """An application that tells of its sales, and knows what was committed."""

    def __init__(self, connect: Callable[[], Any], mark: str):
        self._connect, self._mark = connect, mark
        self._chance, self._next = random.Random(SEED), itertools.count(1)
        self.told: set[int] = set()
        with closing(connect()) as db, db:
            db.execute(TABLE)
            self.told |= set(self._sell(db, 500))

    def work(self, transactions: int) -> None:
        """Commit some transactions, of which some are rolled back."""
        with closing(self._connect()) as db:
            for _ in range(transactions):
                sold = self._sell(db, self._chance.choice([1, 1, 3, 40]))
                if self._chance.random() < 0.1:
                    db.rollback()
                    continue
                db.commit()
                self.told |= set(sold)

    def left(self) -> int:
        with closing(self._connect()) as db:
            return int(db.execute("SELECT count(*) FROM outbox").fetchone()[0])

    def _sell(self, db: Any, count: int) -> list[int]:
        numbers = list(itertools.islice(self._next, count))
        for each in numbers:
            statement = "INSERT INTO outbox VALUES (?, ?)".replace("?", self._mark)
            db.execute(statement, (each, f'{{"n": {each}}}'))
        return numbers


@pytest.fixture(params=["sqlite", "postgres"])
def till(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Till, str, Server | None]]:
    if request.param == "sqlite":
        file = tmp_path / "till.db"
        yield Till(lambda: sqlite3.connect(file, timeout=60), "?"), f"sqlite:{file}", None
        return
    server: Server = request.getfixturevalue("server")
    with psycopg.connect(server.dsn, autocommit=True) as db:
        db.execute("DROP TABLE IF EXISTS outbox")
    yield Till(lambda: psycopg.connect(server.dsn), "%s"), server.dsn, server
    headwater.drop_capture(server.dsn, NAME)


@pytest.mark.faults
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("keep", ["keep", "delete"])
def test_no_event_is_lost_or_told_twice(
    till: tuple[Till, str, Server | None], keep: str, tmp_path: Path
) -> None:
    work, database, server = till
    log = f"file:{tmp_path / 'log'}"
    chance = random.Random(SEED)
    for number in range(KILLS):
        with killed_after(chance, [WORKER, database, log, keep]) as is_due:
            while not is_due():
                work.work(chance.randint(1, 20))
            if server is not None and number % 5 == 1:
                server.stop(signal.SIGQUIT)
                server.start()
                work.work(5)
    with opened(database, log, keep == "delete") as capture:
        capture.catch_up()
    with headwater.open(log) as reading:
        told = [number for batch in reading.read("sales") for number in batch["n"].to_pylist()]
    assert len(told) == len(set(told)), "an event is there twice"
    assert set(told) == work.told
    assert work.left() == (len(work.told) if keep == "keep" else 0)
    print(f"{database.partition(':')[0]}, {keep}: {KILLS} kills, {len(told):,} events, all there once")
