"""A pipeline under ``kill -9`` of all its processes, at random and at each step of its commits.

Its results are a derived topic, a view in SQLite, and a view and a sink in a PostgreSQL server, which
outlives the kills.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import headwater
from headwater.sinks.views import open_views

KILLS = int(os.environ.get("FAULT_KILLS", "2"))
SEED = int(os.environ.get("FAULT_SEED", "7"))
WORKER = Path(__file__).with_name("pipeline_worker.py")
START = 1_700_000_000_000_000


class Shop:
    """What was sent, and what must come of it."""

    def __init__(self, root: Path):
        self.log = headwater.open(f"file:{root / 'log'}")
        self._chance = random.Random(SEED)
        self._next = 0
        self.sent: list[dict[str, Any]] = []

    def send(self) -> None:
        """Send some orders, out of order by less than the lateness, some of them again."""
        fresh = [self._order() for _ in range(self._chance.randint(1, 300))]
        again = self._chance.sample(self.sent, min(len(self.sent), 20))
        rows = fresh + again
        self._chance.shuffle(rows)
        with self.log.producer("orders", id="till") as producer:
            producer.send_batch(rows)
        self.sent += fresh

    def finish(self) -> None:
        with self.log.producer("orders", id="till") as producer:
            producer.mark(START + 10**12)

    def _order(self) -> dict[str, Any]:
        self._next += 1
        late = self._chance.randint(0, 1000)
        at = START + (self._next - late) * 1_000_000
        return {"id": self._next, "who": f"c{self._next % 7}", "amount": self._chance.randint(0, 9), "at": at}


@pytest.mark.faults
@pytest.mark.timeout(KILLS * 80 + 400)
def test_views_streams_and_sinks_are_exact_after_any_kill(tmp_path: Path, database: str) -> None:
    errors = tmp_path / "errors"
    _prepare(tmp_path)
    shop, chance = Shop(tmp_path), random.Random(SEED + 1)
    for number in range(KILLS):
        # Every other time at a point of a commit, the other times at any moment.
        point = chance.randint(1, 40) if number % 2 == 0 else 0
        few = chance.choice([0, 20_000])  # in workers, or in the driver
        worker = _start(tmp_path, str(point), database, errors, few)
        end = time.monotonic() + (60 if point else chance.uniform(8, 25))
        while time.monotonic() < end and worker.poll() is None:
            shop.send()
            time.sleep(0.5)
        _kill(worker)
        assert worker.returncode == -signal.SIGKILL, errors.read_text()
    shop.finish()
    finishing = _start(tmp_path, "finish", database, errors)
    assert finishing.wait(240 + KILLS * 20) == 0, errors.read_text()[-3000:]
    _check(tmp_path, database, shop)
    points = Counter(line.removeprefix("died at ") for line in _deaths(errors))
    print(f"{KILLS} kills, {points.total()} of them at {dict(points)}; {len(shop.sent)} orders")


def _deaths(errors: Path) -> list[str]:
    return [line for line in errors.read_text().splitlines() if line.startswith("died at ")]


def _prepare(root: Path) -> None:
    with headwater.open(f"file:{root / 'log'}") as log:
        log.create_topic(
            "orders",
            "id BIGINT, who STRING, amount BIGINT, at TIMESTAMP",
            event_time="at",
            key="who",
            partitions=2,
        )


def _start(root: Path, task: str, database: str, errors: Path, few: int = 20_000) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "HEADWATER_DRIVER_ROWS": str(few)}
    with open(errors, "ab") as file:
        command = [sys.executable, str(WORKER), str(root), task, database]
        return subprocess.Popen(command, stderr=file, stdout=file, start_new_session=True, env=environment)


def _kill(worker: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(worker.pid, signal.SIGKILL)
    worker.wait()


def _check(root: Path, database: str, shop: Shop) -> None:
    orders = {order["id"]: order for order in shop.sent}
    unique = [row for batch in shop.log.read("shop.unique") for row in batch.to_pylist()]
    assert sorted(row["id"] for row in unique) == sorted(orders)
    assert shop.log.verify().ok
    expected: dict[str, tuple[int, int, int]] = {}
    for order in orders.values():
        n, total, newest = expected.get(order["who"], (0, 0, 0))
        expected[order["who"]] = (n + 1, total + order["amount"], max(newest, order["at"]))
    with open_views(root / "log" / "pipelines" / "shop" / "views.db") as views:
        newest = {row["who"]: int(row["at"].timestamp() * 1e6) for row in views["newest"].scan().to_pylist()}
    with open_views(database) as views:
        totals = {row["who"]: (row["n"], row["total"]) for row in views["totals"].scan().to_pylist()}
        archive = {row["id"]: (row["who"], row["amount"]) for row in views["archive"].scan().to_pylist()}
    assert totals == {who: (n, total) for who, (n, total, _) in expected.items()}
    assert newest == {who: at for who, (_, _, at) in expected.items()}
    assert archive == {number: (order["who"], order["amount"]) for number, order in orders.items()}
