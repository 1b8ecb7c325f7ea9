"""A pipeline whose table follows a database: what is committed there arrives in its views."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

import headwater
from changes_kit import execute
from headwater import Pipeline, joins

pytestmark = pytest.mark.usefixtures("spark")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "crm.db"
    execute(
        path,
        "CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT, tier TEXT)",
        "INSERT INTO customers VALUES (1, 'ada', 'gold'), (2, 'bob', 'silver')",
    )
    return path


@pytest.fixture
def shop(url: str, file: Path, tmp_path: Path) -> Pipeline:
    declared = Pipeline("shop", log=url, home=tmp_path / "home")
    declared.capture("crm", f"sqlite:{file}")
    columns = "id BIGINT, name STRING, tier STRING"
    declared.table("customers", columns, key="id", captured="crm.customers", history=True)
    declared.source("orders", "id BIGINT, customer BIGINT")

    @declared.view(key="id")
    def gold(customers: DataFrame) -> DataFrame:
        return customers.filter("tier = 'gold'").select("id", "name")

    @declared.view(key="id")
    def order_names(orders: DataFrame, customers: DataFrame) -> DataFrame:
        return orders.transform(joins.lookup(customers, on={"customer": "id"}, prefix="customer_"))

    return declared


def held(shop: Pipeline) -> dict[int, str]:
    with headwater.open_views(shop) as views:
        return {row["id"]: row["name"] for row in views["gold"].scan().to_pylist()}


def test_a_run_captures_first_and_its_results_are_proved(
    spark: SparkSession, shop: Pipeline, file: Path
) -> None:
    headwater.run(shop, until_caught_up=True)
    assert held(shop) == {1: "ada"}
    execute(file, "UPDATE customers SET tier = 'gold' WHERE id = 2", "DELETE FROM customers WHERE id = 1")
    with headwater.open(shop.log) as log, log.producer("orders") as producer:
        producer.send_batch([{"id": 7, "customer": 2}])
    headwater.run(shop, until_caught_up=True)
    assert held(shop) == {2: "bob"}
    with headwater.open_views(shop) as views:
        assert views["order_names"].get(7)["name"] == "bob"
    assert all(verdict.ok for verdict in headwater.verify(shop))


def test_a_live_run_follows_the_database(spark: SparkSession, shop: Pipeline, file: Path) -> None:
    with headwater.run(shop) as work:
        wait_for(lambda: held(shop) == {1: "ada"})
        execute(
            file,
            "INSERT INTO customers VALUES (3, 'eve', 'gold')",
            "UPDATE customers SET name = 'Ada' WHERE id = 1",
        )
        wait_for(lambda: held(shop) == {1: "Ada", 3: "eve"})
        [status] = work.captures()
        assert (status.capture, status.state, status.changes) == ("crm", "streaming", 2)


def test_a_table_in_which_nothing_changes_holds_no_join(
    spark: SparkSession, url: str, file: Path, tmp_path: Path
) -> None:
    declared = Pipeline("shop", log=url, home=tmp_path / "home")
    declared.capture("crm", f"sqlite:{file}")
    declared.table("customers", "id BIGINT, tier STRING", key="id", captured="crm.customers")
    declared.source("orders", "id BIGINT, customer BIGINT, at TIMESTAMP", event_time="at", idle="1 second")

    @declared.view(key="id")
    def tiers(orders: DataFrame, customers: DataFrame) -> DataFrame:
        return orders.transform(joins.as_of(customers, on={"customer": "id"}))

    def order(number: int) -> None:
        with headwater.open(url) as log, log.producer("orders") as producer:
            producer.send({"id": number, "customer": 2, "at": datetime.now(UTC)})

    def tier(number: int) -> object:
        with headwater.open_views(declared) as views:
            found = views["tiers"].get(number)
            return None if found is None else found["tier"]

    with headwater.run(declared) as work:
        wait_for(lambda: [each.state for each in work.captures()] == ["streaming"])
        order(1)
        wait_for(lambda: tier(1) == "silver")
        order(2)
        wait_for(lambda: tier(2) == "silver")
        assert work.captures()[0].changes == 0


def test_check_compares_the_columns_with_those_of_the_database(shop: Pipeline, file: Path) -> None:
    assert [each.node for each in headwater.check(shop)] == ["gold", "order_names"]
    execute(file, "ALTER TABLE customers RENAME COLUMN tier TO grade")
    with pytest.raises(headwater.HeadwaterError, match="is not as it is declared"):
        headwater.check(shop)


def wait_for(holds: object) -> None:
    deadline = time.monotonic() + 120
    while True:
        try:
            if holds():  # type: ignore[operator]
                return
        except headwater.HeadwaterError:  # there are no views yet
            pass
        assert time.monotonic() < deadline
        time.sleep(0.1)
