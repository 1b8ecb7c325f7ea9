"""A pipeline whose log is Kafka: the same source, clock, streams, views and proof."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame

import headwater
from headwater import Pipeline, dedup, scan
from headwater.engine.proof.verify import verify
from headwater.engine.runner import Runner
from headwater.engine.spark.session import session

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)

pytestmark = pytest.mark.kafka


def add(state: dict[str, Any] | None, event: dict[str, Any]) -> dict[str, Any]:
    before = state or {"n": 0, "total": 0.0}
    return {"n": before["n"] + 1, "total": before["total"] + event["amount"]}


def test_a_pipeline_on_kafka_is_exact_and_proved(kafka_broker: str, tmp_path: Path) -> None:
    url, name = f"kafka://{kafka_broker}", f"orders-{uuid.uuid4().hex[:8]}"
    shop = Pipeline(f"shop-{uuid.uuid4().hex[:8]}", log=url, home=tmp_path / "home")
    schema = "id BIGINT, who STRING, amount DOUBLE, at TIMESTAMP"
    shop.source("orders", schema, event_time="at", key="who", topic=name)

    @shop.stream(key="who")
    def unique(orders: DataFrame) -> DataFrame:
        return orders.transform(dedup(on="id", within="1 hour"))

    @shop.view(key="who")
    def totals(orders: DataFrame) -> DataFrame:
        return orders.transform(scan(add, by="who", schema="n BIGINT, total DOUBLE"))

    spark = session(master="local[2]", output=tmp_path / "spark.log")
    with headwater.open(url) as log:
        log.create_topic(name, schema, key="who", event_time="at", partitions=2)
        send(log, name, [0, 1, 2, 1, 0], until=10)
        for first in (3, 6):  # the second time from its checkpoint
            with Runner(shop, spark=spark, patient=True) as runner:
                runner.catch_up()
                send(log, name, [first, first + 1, first + 2, first], until=100)
                runner.catch_up()
                assert verify(runner, "unique").ok
                assert verify(runner, "totals").ok
        found = sorted(row["id"] for batch in log.read(f"{shop.name}.unique") for row in batch.to_pylist())
    assert found == list(range(9))


def send(log: headwater.Log, topic: str, ids: list[int], until: int) -> None:
    with log.producer(topic, id="till") as producer:
        rows = [{"id": n, "who": f"c{n % 3}", "amount": 1.0, "at": NOON + timedelta(seconds=n)} for n in ids]
        producer.send_batch(rows)
        producer.mark(NOON + timedelta(seconds=min(until, min(ids) + 3)))
