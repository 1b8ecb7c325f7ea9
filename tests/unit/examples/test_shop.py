"""The generator of ``examples/shop``: as many events as asked for, the same each time, not too perfect."""

from __future__ import annotations

import importlib
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import headwater
from headwater import Log
from headwater.engine.batch.inputs import declare
from headwater.pipeline.loading import load
from shop_kit import SHOP, fresh_shop_modules


@pytest.fixture
def feed(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The module ``feed.py``; none of the example's modules stays behind."""
    monkeypatch.setattr(sys, "path", [str(SHOP), *sys.path])
    with fresh_shop_modules():
        yield importlib.import_module("feed")


@pytest.fixture
def log(feed: Any, tmp_path: Path) -> Iterator[Log]:
    """A new log with the topics of the shop."""
    pipeline = load(SHOP / "shop.py")
    with headwater.open(f"file:{tmp_path}/data") as opened:
        for each in (*pipeline.sources, *pipeline.tables):
            declare(opened, each)
        yield opened


def write(log: Log, *options: object) -> subprocess.CompletedProcess[str]:
    crm = Path(log.url.removeprefix("file:")).with_name("crm.db")
    command = [sys.executable, str(SHOP / "feed.py"), "--log", log.url, "--crm", str(crm), *map(str, options)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def rows(log: Log, topic: str) -> list[dict[str, Any]]:
    return [row for batch in log.read(topic) for row in batch.to_pylist()]


def test_a_seed_gives_the_same_events_each_time_and_another_seed_others(feed: Any) -> None:
    def some(seed: int) -> list[Any]:
        return list(islice(feed.events(seed=seed), 3000))

    assert some(1) == some(1)
    assert some(1) != some(2)


def test_fewer_events_are_the_first_of_more(feed: Any) -> None:
    more = list(islice(feed.events(), 2000))
    assert list(islice(feed.events(), 500)) == more[:500]
    assert [event.sent for event in more] == sorted(event.sent for event in more)


def test_some_orders_are_sent_twice_and_some_late_and_parcels_overtake(feed: Any) -> None:
    events = list(islice(feed.events(), 20_000))
    orders = [event for event in events if event.topic == "orders"]
    copies = Counter(event.row["order_id"] for event in orders)
    delays = [(event.sent - event.row["at"]).total_seconds() for event in orders]
    assert 0.02 < sum(n - 1 for n in copies.values()) / len(copies) < 0.08
    assert 0.002 < sum(delay > 15 for delay in delays) / len(delays) < 0.03
    heard: dict[int, Any] = {}
    overtaken = 0
    for event in events:
        if event.topic == "parcels":
            number, at = event.row["order_id"], event.row["at"]
            overtaken += number in heard and at < heard[number]
            heard[number] = at
    assert overtaken
    distinct = {tuple(event.row.items()) for event in orders}
    assert len(distinct) == len(copies), "copies are exact"


def test_the_generator_writes_exactly_as_many_events_as_asked_for(
    feed: Any, log: Log, tmp_path: Path
) -> None:
    told = write(log, "--events", 6000)
    assert (told.returncode, told.stderr) == (0, "")
    assert told.stdout.split()[-1] == "6000"
    expected = Counter(event.topic for event in islice(feed.events(), 6000))
    for topic in ("orders", "parcels"):
        assert len(rows(log, topic)) == expected[topic]
    customers = [event.row for event in islice(feed.events(), 6000) if event.topic == "customers"]
    assert sum(log.describe(topic).records for topic in expected) == 6000 - len(customers)
    newest = {row["customer"]: (row["country"], row["tier"], row["since"].isoformat()) for row in customers}
    with closing(sqlite3.connect(tmp_path / "crm.db")) as db:
        held = {name: row for name, *row in db.execute("SELECT * FROM customers")}
    assert datetime.fromisoformat(held.pop("the shop")[-1]) > customers[-1]["since"], "time goes on"
    assert {name: tuple(row) for name, row in held.items()} == newest


def test_events_at_once_are_for_a_new_log(log: Log) -> None:
    assert write(log, "--events", 100).returncode == 0
    told = write(log, "--events", 100)
    assert told.returncode == 1
    assert told.stderr.startswith("error: the log has orders already")


def test_without_the_topics_it_says_so_in_a_line(tmp_path: Path) -> None:
    with headwater.open(f"file:{tmp_path}/data") as log:
        told = write(log)
    assert told.returncode == 1
    assert told.stderr.startswith('error: no topic "orders"'), told.stderr
    assert "Traceback" not in told.stderr


def test_the_views_are_foretold_of_unique_orders_without_late_ones(feed: Any) -> None:
    expected = importlib.import_module("expected").expected
    events = list(islice(feed.events(), 3000))
    orders = {event.row["order_id"]: event.row for event in events if event.topic == "orders"}
    views = expected(events)
    assert sum(row["orders"] for row in views["spending"]) == len(orders)
    assert sum(row["total"] for row in views["spending"]) == sum(row["amount"] for row in orders.values())
    assert all(row["amount"] >= 500 for row in views["big_orders"])
    late = set(islice(orders, 10))
    without = expected(events, {"unique_orders": late})
    assert sum(row["orders"] for row in without["spending"]) == len(without["invoices"]) == len(orders) - 10


def test_an_order_that_one_view_set_aside_counts_in_the_others(feed: Any, log: Log) -> None:
    oracle = importlib.import_module("expected")
    events = list(islice(feed.events(), 300))
    orders = {event.row["order_id"]: event.row for event in events if event.topic == "orders"}
    first, second = islice(orders.values(), 2)
    log.create_topic("shop.spending.late", log.topic("orders").schema)
    joined = pa.schema([("_side", pa.int8()), ("_left", pa.struct(log.topic("orders").schema))])
    log.create_topic("shop.placed_orders.late", joined)
    for topic, row in (("spending", first), ("placed_orders", {"_side": 0, "_left": second})):
        with log.producer(f"shop.{topic}.late") as producer:
            producer.send(row)
    views = oracle.expected(events, oracle.set_aside(log))
    assert sum(row["orders"] for row in views["spending"]) == len(views["invoices"]) == len(orders) - 1
    assert second["order_id"] not in {row["order_id"] for row in views["invoices"]}
