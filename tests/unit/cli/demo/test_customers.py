"""The database of the demo's customers, and how long an update of it takes to a view; no Spark."""

from __future__ import annotations

import sqlite3
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest

import headwater
from headwater import Pipeline
from headwater.cli.demo import customers
from headwater.cli.demo.customers import CUSTOMER, Update, Updates, capturing, prepare
from headwater.sinks import Batch
from headwater.views import ViewStore

SHOP = Path(__file__).parents[4] / "examples" / "shop"


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pipeline]:
    monkeypatch.syspath_prepend(SHOP)
    monkeypatch.setattr(customers, "PAUSE", 0.05)
    made = Pipeline("shop", log=f"file:{tmp_path}/data")
    made.capture("crm", f"sqlite:{tmp_path}/crm.db")
    columns = "customer STRING, country STRING, tier STRING, since TIMESTAMP"
    made.table("customers", columns, key="customer", event_time="since", captured="crm.customers")
    made.sql("gold_customers", "SELECT * FROM customers WHERE tier = 'gold'", key="customer")
    yield made
    sys.modules.pop("crm", None)


def wait_for(reached: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not reached():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def tier(file: Path) -> str:
    with closing(sqlite3.connect(file)) as db:
        [(found,)] = db.execute("SELECT tier FROM customers WHERE customer = ?", [CUSTOMER])
    return str(found)


def test_every_version_is_captured_from_the_first_one_on(shop: Pipeline) -> None:
    file = prepare(shop)
    with capturing(shop), closing(sqlite3.connect(file)) as db:
        for country in ("fr", "it"):
            row = ("ada", country, "gold", "2026-01-01T00:00:00Z")
            with db:
                db.execute("INSERT OR REPLACE INTO customers VALUES (?, ?, ?, ?)", row)
        with headwater.open(shop.log) as log:
            wait_for(lambda: log.describe("customers").records == 2)
            versions = [row["country"] for batch in log.read("customers") for row in batch.to_pylist()]
    assert versions == ["fr", "it"]


def test_an_update_is_on_its_way_until_the_view_shows_it(shop: Pipeline) -> None:
    file = prepare(shop)
    with Updates(shop, file) as updates, ViewStore(shop.home / "views.db") as store:
        sink = store.sink("gold_customers", "customer STRING", "customer")
        sink.begin()
        time.sleep(0.1)
        assert updates.last is None, "the view shows nobody yet"
        sink.commit(Batch(0, pa.table({"customer": ["ada"]})))
        wait_for(lambda: updates.last is not None and tier(file) == "gold")
        assert updates.last == Update("gold")
        sink.commit(Batch(1, pa.table({"customer": [CUSTOMER]})))
        wait_for(lambda: updates.last is not None and tier(file) == "silver")
        gone = pa.table({"customer": [CUSTOMER], "_deleted": [True]})
        sink.commit(Batch(2, gone))
        wait_for(lambda: updates.last is not None and updates.last.seconds is not None)


def test_a_line_tells_of_it_as_long_as_the_window_is() -> None:
    update = Update("gold", 0.42)
    statement = "UPDATE customers SET tier = 'gold', since = … WHERE customer = 'zoe'"
    assert update.text(120) == f"crm.db: {statement}  ▶  view gold_customers after 0.4 s"
    assert update.text(80) == "crm.db: zoe is gold  ▶  gold_customers after 0.4 s"
    assert Update("silver").text(60) == "crm.db: zoe is silver  ▶  gold_customers …"
