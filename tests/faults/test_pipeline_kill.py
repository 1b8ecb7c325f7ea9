"""A pipeline under ``kill -9`` of all its processes, at random and at each step of its commits.

Its results are a derived topic, windows and joins in SQLite, and a view and a sink in a PostgreSQL
server, which outlives the kills. The inputs of the joins are silent for a while now and then.
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
from headwater.views import Views, open_views

KILLS = int(os.environ.get("FAULT_KILLS", "1"))
SEED = int(os.environ.get("FAULT_SEED", "7"))
WORKER = Path(__file__).with_name("pipeline_worker.py")
START = 1_700_000_000_000_000
HOUR = 3_600_000_000


class Shop:
    """What was sent, and what must come of it."""

    def __init__(self, root: Path):
        self.log = headwater.open(f"file:{root / 'log'}")
        self._chance = random.Random(SEED)
        self._next = 0
        self.sent: list[dict[str, Any]] = []
        self.rates: list[dict[str, Any]] = []
        self.payments: dict[int, int] = {}

    def send(self) -> None:
        """Send some orders, out of order by less than the lateness, some of them again, and what joins."""
        fresh = [self._order() for _ in range(self._chance.randint(1, 300))]
        again = self._chance.sample(self.sent, min(len(self.sent), 20))
        rows = fresh + again
        self._chance.shuffle(rows)
        with self.log.producer("orders", id="till") as producer:
            producer.send_batch(rows)
        self.sent += fresh
        if self._chance.random() < 0.05:
            self._change_a_rate()
        if self._next % 10_000 < 5_000:  # then nobody pays for a while
            self._pay(fresh)

    def finish(self) -> None:
        """Promise that nothing comes any more."""
        for topic in ("orders", "payments", "rates"):
            with self.log.producer(topic, id="till") as producer:
                producer.mark(START + 10**12)

    def _change_a_rate(self) -> None:
        number = len(self.rates)
        rate = {"who": f"c{number % 7}", "rate": number, "since": START + self._next * 1_000_000}
        with self.log.producer("rates", id="till") as producer:
            producer.send(rate)
        self.rates.append(rate)

    def _pay(self, orders: list[dict[str, Any]]) -> None:
        paid = {order["id"]: order["at"] + self._chance.randint(0, 900) * 1_000_000 for order in orders}
        with self.log.producer("payments", id="till") as producer:
            producer.send_batch([{"id": number, "paid": at} for number, at in paid.items()])
        self.payments |= paid

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
        log.create_topic("payments", "id BIGINT, paid TIMESTAMP", event_time="paid")
        rates = "who STRING, rate BIGINT, since TIMESTAMP"
        log.create_topic("rates", rates, event_time="since", key="who", cleanup="compact")


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
        _check_windows_and_joins(views, shop, list(orders.values()))
    with open_views(database) as views:
        totals = {row["who"]: (row["n"], row["total"]) for row in views["totals"].scan().to_pylist()}
        archive = {row["id"]: (row["who"], row["amount"]) for row in views["archive"].scan().to_pylist()}
    assert totals == {who: (n, total) for who, (n, total, _) in expected.items()}
    assert newest == {who: at for who, (_, _, at) in expected.items()}
    assert archive == {number: (order["who"], order["amount"]) for number, order in orders.items()}


def _check_windows_and_joins(views: Views, shop: Shop, orders: list[dict[str, Any]]) -> None:
    hours: Counter[tuple[str, int]] = Counter()
    for order in orders:
        hours[order["who"], order["at"] // HOUR * HOUR] += order["amount"]
    by_hour = {
        (row["who"], int(row["window_start"].timestamp() * 1e6)): row["total"]
        for row in views["by_hour"].scan().to_pylist()
    }
    assert by_hour == dict(hours)
    rated = {row["id"]: row["rate"] for row in views["rated"].scan().to_pylist()}
    assert rated == {order["id"]: _rate(shop.rates, order) for order in orders}
    paid = {row["id"]: row["paid"] for row in views["paid"].scan().to_pylist()}
    longest = 600 * 1_000_000
    assert paid == {
        order["id"]: 0 <= shop.payments.get(order["id"], 0) - order["at"] <= longest for order in orders
    }


def _rate(rates: list[dict[str, Any]], order: dict[str, Any]) -> int | None:
    valid = [rate["rate"] for rate in rates if rate["who"] == order["who"] and rate["since"] <= order["at"]]
    return valid[-1] if valid else None
