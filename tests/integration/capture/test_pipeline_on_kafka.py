"""A pipeline over Kafka that captures a database: an outbox's events in its views, and whole transactions."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

import headwater
from changes_kit import execute
from headwater import Pipeline, read_transactions

pytestmark = pytest.mark.kafka


def sell(file: Path, order: int) -> None:
    """Take money from an account and tell of it, in one transaction."""
    event = f'{{"id": {order}, "item": "tea"}}'
    execute(
        file,
        "UPDATE accounts SET cents = cents - 1 WHERE id = 1",
        ("INSERT INTO outbox VALUES (?, 'sold', ?)", (order, event)),
    )


def test_events_of_an_outbox_reach_a_view_and_transactions_are_read_whole(
    spark: SparkSession, kafka_broker: str, tmp_path: Path
) -> None:
    file, name = tmp_path / "crm.db", f"shop-{uuid.uuid4().hex[:8]}"
    execute(
        file,
        "CREATE TABLE accounts (id INTEGER PRIMARY KEY, cents INTEGER)",
        "CREATE TABLE outbox (id INTEGER PRIMARY KEY, kind TEXT, payload TEXT)",
        "INSERT INTO accounts VALUES (1, 100)",
    )
    shop = Pipeline(name, log=f"kafka://{kafka_broker}", home=tmp_path / "home")
    shop.capture("crm", f"sqlite:{file}", transactions=True)
    shop.table(
        "accounts", "id BIGINT, cents BIGINT", key="id", topic=f"{name}.accounts", captured="crm.accounts"
    )
    shop.source(
        "orders", "id BIGINT, item STRING", topic=f"{name}.orders", captured="crm.outbox", event="payload",
        headers=["kind"],
    )  # fmt: skip

    @shop.view(key="id")
    def sold(orders: DataFrame) -> DataFrame:
        return orders

    @shop.view(key="id")
    def balances(accounts: DataFrame) -> DataFrame:
        return accounts

    sell(file, 0)  # which a snapshot finds
    for first in (1, 4):  # the second time from where it was
        headwater.run(shop, until_caught_up=True)
        for number in range(first, first + 3):
            sell(file, number)
    headwater.run(shop, until_caught_up=True)
    with headwater.open_views(shop) as views:
        assert sorted(row["id"] for row in views["sold"].scan().to_pylist()) == list(range(7))
        assert views["balances"].get(1)["cents"] == 93
    assert all(verdict.ok for verdict in headwater.verify(shop))

    with headwater.open(shop.log) as log:
        told = list(read_transactions(log, f"{name}.crm"))
    assert 2 <= sum(whole.transactions.num_rows for whole in told) <= 6  # SQLite may tell several as one
    for whole in told:
        taken = 100 - whole.changes[f"{name}.accounts"]["cents"].to_pylist()[-1]
        assert whole.changes[f"{name}.orders"]["id"].to_pylist()[-1] == taken - 1  # each with its event
