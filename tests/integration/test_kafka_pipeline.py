"""A pipeline whose log is Kafka: the same source, clock, streams, views and proof."""

from __future__ import annotations

import json
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from pyspark.sql import DataFrame, SparkSession

import headwater
from headwater import Pipeline, agg, dedup, scan, windows
from headwater.engine.proof.verify import verify
from headwater.engine.runner import Runner
from headwater.log import prefetched
from kafka_kit import make_topic, produce, produce_at_once, settings, until

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)

pytestmark = [pytest.mark.kafka, pytest.mark.usefixtures("spark")]


def add(state: dict[str, Any] | None, event: dict[str, Any]) -> dict[str, Any]:
    before = state or {"n": 0, "total": 0.0}
    return {"n": before["n"] + 1, "total": before["total"] + event["amount"]}


def test_a_pipeline_on_kafka_is_exact_and_proved(
    spark: SparkSession, kafka_broker: str, tmp_path: Path
) -> None:
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


def test_topics_of_other_programs_are_read_as_the_pipeline_declares_them(
    kafka_broker: str, tmp_path: Path
) -> None:
    end = uuid.uuid4().hex[:8]
    events, users = f"events-{end}", f"users-{end}"
    for name, partitions in ((events, 3), (users, 2)):
        make_topic(kafka_broker, name, partitions)
    before = {name: settings(kafka_broker, name) for name in (events, users)}
    web = Pipeline(f"web-{end}", log=f"kafka://{kafka_broker}", home=tmp_path / "home")
    columns = "user STRING, amount DOUBLE, at BIGINT"
    web.source("events", columns, topic=events, event_time="timestamp_millis(at)", lateness="10 seconds")
    web.table("users", "tier STRING", key="CAST(_key AS STRING) AS id", topic=users)

    @web.view(key=["user", "window_start"])
    def totals(events: DataFrame) -> DataFrame:
        return events.transform(
            windows.tumbling("1 minute", by="user", n=agg.count(), paid=agg.sum("amount"))
        )

    @web.view(key="id")
    def tiers(users: DataFrame) -> DataFrame:
        return users

    send_events(kafka_broker, events, 6_000)
    changes = [("ada", "gold"), ("bob", "tin"), ("ada", "silver"), ("bob", None)]
    records = [{"key": who.encode(), "value": tier_json(who, tier)} for who, tier in changes]
    produce(kafka_broker, users, records)
    headwater.run(web, until_caught_up=True)
    send_events(kafka_broker, events, 6_000, first=6_000)
    statuses = {status.node: status for status in headwater.run(web, until_caught_up=True)}
    assert statuses["totals"].late == 0
    assert all(verdict.ok for verdict in headwater.verify(web))
    with headwater.open_views(web) as views:
        assert views["tiers"].scan().to_pylist() == [{"tier": "silver", "id": "ada"}]
        closed = [row["n"] for row in views["totals"].scan().to_pylist()]
    assert sum(closed) == 9_000  # three minutes of four: ten seconds are still waited for
    assert {name: settings(kafka_broker, name) for name in (events, users)} == before
    assert until(lambda: not prefetched.remove_abandoned(tmp_path / "home" / "prefetch"))


def test_avro_of_another_program_runs_through_a_pipeline_and_is_proved(
    kafka_broker: str, schema_registry: str, tmp_path: Path
) -> None:
    end = uuid.uuid4().hex[:8]
    events, users = f"events-{end}", f"users-{end}"
    make_topic(kafka_broker, events, 2)
    make_topic(kafka_broker, users)
    url = f"kafka://{kafka_broker}?schema.registry.url={schema_registry}"
    web = Pipeline(f"web-{end}", log=url, home=tmp_path / "home")
    columns = "user STRING, amount DOUBLE, at TIMESTAMP"
    web.source("events", columns, topic=events, event_time="at", lateness="10 seconds", format="avro")
    web.table("users", "id BIGINT, tier STRING", key="id", topic=users, format="csv", key_format="avro")

    @web.view(key=["user", "window_start"], on_error="dead_letter")
    def totals(events: DataFrame) -> DataFrame:
        return events.transform(windows.tumbling("1 minute", by="user", n=agg.count()))

    @web.view(key="id")
    def tiers(users: DataFrame) -> DataFrame:
        return users

    with SchemaRegistryClient({"url": schema_registry}) as client:
        produce(kafka_broker, events, [{"value": b"no \xff Avro", "partition": 0}])
        send_avro_events(client, kafka_broker, events, 6_000)
        key, context = AvroSerializer(client, '"long"'), SerializationContext(users, MessageField.KEY)
        changes = [(1, b"gold"), (2, b"tin"), (1, b"silver"), (2, None)]
        produce(kafka_broker, users, [{"key": key(id, context), "value": tier} for id, tier in changes])
    headwater.run(web, until_caught_up=True)
    assert all(verdict.ok for verdict in headwater.verify(web))
    with headwater.open_views(web) as views:
        assert views["tiers"].scan().to_pylist() == [{"id": 1, "tier": "silver"}]
        closed = [row["n"] for row in views["totals"].scan().to_pylist()]
    assert sum(closed) == 3_000  # one minute of two: ten seconds are still waited for
    assert [(each.offset, each.record) for each in headwater.dead_letters(web)] == [(0, "no \\xff Avro")]


def send_avro_events(client: SchemaRegistryClient, broker: str, topic: str, count: int) -> None:
    """Send as another program does, which changes its schema with every second event."""
    at = {"type": "long", "logicalType": "timestamp-millis"}
    fields = [{"name": "at", "type": at}, {"name": "user", "type": "string"}]
    versions = [
        AvroSerializer(client, json.dumps({"type": "record", "name": "Event", "fields": [*fields, more]}))
        for more in ({"name": "amount", "type": "float"}, {"name": "agent", "type": "string"})
    ]
    context = SerializationContext(topic, MessageField.VALUE)
    rows = [
        {"user": f"u{n % 7}", "at": NOON + timedelta(milliseconds=20 * n), "amount": 1.5, "agent": "x"}
        for n in range(count)
    ]
    records = [
        {"value": versions[n % 2](row, context), "partition": n // 2 % 2} for n, row in enumerate(rows)
    ]
    produce_at_once(broker, topic, records)


def test_records_that_cannot_be_read_are_dead_letters_and_the_others_are_counted(
    kafka_broker: str, tmp_path: Path
) -> None:
    name = f"events-{uuid.uuid4().hex[:8]}"
    make_topic(kafka_broker, name, 1)
    web = Pipeline(f"web-{name}", log=f"kafka://{kafka_broker}", home=tmp_path / "home")
    web.source("events", "user STRING, at STRING", topic=name, event_time="to_timestamp(at)")

    @web.view(key="window_start", on_error="dead_letter")
    def daily(events: DataFrame) -> DataFrame:
        return events.transform(windows.tumbling("1 day", n=agg.count()))

    days = [b'"2026-01-01"', b'"no day"', b'"2026-01-01"', b"7", b'"2026-01-02"']
    values = [b'{"user": "a", "at": %s}' % day for day in days]
    produce(kafka_broker, name, [{"value": each} for each in (*values[:2], b"not JSON", *values[2:])])
    headwater.run(web, until_caught_up=True)
    letters = headwater.dead_letters(web)
    assert [(each.offset, each.record) for each in letters] == [
        (1, values[1].decode()), (2, "not JSON"), (4, values[3].decode()),
    ]  # fmt: skip
    with headwater.open_views(web) as views:
        assert [row["n"] for row in views["daily"].scan().to_pylist()] == [2]
    assert all(verdict.ok for verdict in headwater.verify(web))


def send_events(broker: str, topic: str, count: int, first: int = 0) -> None:
    """Send as another program does, one partition after the other, so that they are not in step."""
    for partition in range(3):
        numbers = range(first + partition, first + count, 3)
        records = [{"value": event_json(n), "partition": partition} for n in numbers]
        produce_at_once(broker, topic, records)


def event_json(n: int) -> bytes:
    at = int(NOON.timestamp()) * 1000 + 20 * n
    return b'{"user": "u%d", "amount": 1.5, "at": %d, "agent": "another"}' % (n % 7, at)


def tier_json(who: str, tier: str | None) -> bytes | None:
    return None if tier is None else b'{"id": "%s", "tier": "%s"}' % (who.encode(), tier.encode())


def send(log: headwater.Log, topic: str, ids: list[int], until: int) -> None:
    with log.producer(topic, id="till") as producer:
        rows = [{"id": n, "who": f"c{n % 3}", "amount": 1.0, "at": NOON + timedelta(seconds=n)} for n in ids]
        producer.send_batch(rows)
        producer.mark(NOON + timedelta(seconds=min(until, min(ids) + 3)))
