"""A pipeline on Kafka while brokers die and topics change: it is exact, or says what is gone."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from confluent_kafka.admin import NewPartitions
from pyspark.sql import DataFrame, SparkSession

import headwater
from headwater import Log, Pipeline, agg, windows
from headwater.engine.proof.verify import verify
from headwater.engine.runner import Runner
from headwater.errors import HeadwaterError, InputLost, LogUnavailable
from kafka_broker import Broker, Brokers
from kafka_kit import admin, begin_transaction, delete_records, make_topic, produce_at_once, until
from runner_kit import running

pytestmark = pytest.mark.kafka
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
SCHEMA = "id BIGINT, who STRING, at TIMESTAMP"


@pytest.fixture
def name() -> str:
    return f"orders-{uuid.uuid4().hex[:8]}"


def shop(url: str, topic: str, home: Path) -> Pipeline:
    """A pipeline with a stream, which goes to a topic, and a view, over a topic of another program."""
    pipeline = Pipeline(f"shop-{topic}", log=url, home=home)
    pipeline.source("orders", SCHEMA, topic=topic, event_time="at", lateness="1 hour")

    @pipeline.stream()
    def even(orders: DataFrame) -> DataFrame:
        return orders.where("id % 2 = 0")

    @pipeline.view(key="id")
    def seen(orders: DataFrame) -> DataFrame:
        return orders

    @pipeline.view(key=["who", "window_start"])
    def counts(orders: DataFrame) -> DataFrame:
        return orders.transform(windows.tumbling("1 minute", by="who", n=agg.count()))

    return pipeline


def orders(first: int, end: int, partitions: int) -> list[dict[str, object]]:
    at = NOON.isoformat()
    value = '{{"id": {n}, "who": "c{who}", "at": "{at}"}}'
    return [
        {"value": value.format(n=n, who=n % 3, at=at).encode(), "partition": n % partitions}
        for n in range(first, end)
    ]


@pytest.fixture
def runner(spark: SparkSession, kafka_broker: str, name: str, tmp_path: Path) -> Iterator[Runner]:
    """A runner of the pipeline over a topic of one partition, with ten orders."""
    make_topic(kafka_broker, name, 1)
    pipeline = shop(f"kafka://{kafka_broker}", name, tmp_path / "home")
    with Runner(pipeline, spark=spark, patient=True) as runner:
        produce_at_once(kafka_broker, name, orders(0, 10, 1))
        yield runner


def shown(runner: Runner) -> int:
    return runner.store.view("seen").count() if "seen" in runner.store.names() else 0


def check(runner: Runner, log: Log, count: int) -> None:
    """Everything is there once, in the view and in the topic of the stream, and proved."""
    runner.catch_up()
    assert sorted(row["id"] for row in runner.store.view("seen").scan().to_pylist()) == list(range(count))
    derived = [row["id"] for batch in log.read(f"{runner.pipeline.name}.even") for row in batch.to_pylist()]
    assert sorted(derived) == list(range(0, count, 2))
    assert all(verify(runner, node).ok for node in ("even", "seen", "counts"))


@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_pipeline_outlasts_a_broker_that_is_killed(
    spark: SparkSession, brokers: Brokers, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headwater.engine.batch.retry.MAX_BACKOFF_SECONDS", 2.0)
    make_topic(brokers.servers, name, 3, 3)
    pipeline = shop(brokers.url, name, tmp_path / "home")
    with Runner(pipeline, spark=spark, patient=True) as runner, headwater.open(brokers.url) as log:
        produce_at_once(brokers.servers, name, orders(0, 3_000, 3))
        with running(runner):
            assert until(lambda: shown(runner) == 3_000, 60)
            leader = admin(brokers.servers).list_topics(name, timeout=10).topics[name].partitions[0].leader
            node = brokers.nodes[leader - 1]
            node.kill()
            produce_at_once(brokers.servers, name, orders(3_000, 6_000, 3))
            assert until(lambda: shown(runner) == 6_000, 60)
            node.start()
            produce_at_once(brokers.servers, name, orders(6_000, 9_000, 3))
            assert until(lambda: shown(runner) == 9_000, 60)
        check(runner, log, 9_000)


def test_partitions_that_are_added_while_a_pipeline_runs_are_read(
    runner: Runner, kafka_broker: str, name: str
) -> None:
    with running(runner), headwater.open(f"kafka://{kafka_broker}") as log:
        assert until(lambda: shown(runner) == 10, 60)
        open_one = begin_transaction(kafka_broker, name, orders(10, 15, 1))

        admin(kafka_broker).create_partitions([NewPartitions(name, 3)])[name].result(30)
        assert until(lambda: log.topic(name).partitions == 3)
        produce_at_once(kafka_broker, name, [{**each, "partition": 2} for each in orders(15, 20, 1)])
        open_one.commit_transaction(30)
        begin_transaction(kafka_broker, name, orders(100, 105, 3)).abort_transaction(30)
        assert until(lambda: shown(runner) == 20, 60)
    with headwater.open(f"kafka://{kafka_broker}") as log:
        check(runner, log, 20)


def test_records_that_go_before_a_running_pipeline_has_read_them_are_told(
    runner: Runner, kafka_broker: str, name: str
) -> None:
    runner.catch_up()
    produce_at_once(kafka_broker, name, orders(10, 100, 1))
    delete_records(kafka_broker, name, 60)
    try:
        runner.catch_up()
    except InputLost as told:  # it may have read some of them before they went
        assert f'of topic "{name}"' in told.message
        assert "50 records" in told.message or shown(runner) > 10
    else:  # or all: records are read ahead
        assert shown(runner) == 100


def test_a_topic_that_is_made_again_under_a_running_pipeline_is_refused(
    runner: Runner, kafka_broker: str, name: str
) -> None:
    runner.catch_up()
    with headwater.open(f"kafka://{kafka_broker}") as log:
        log.delete_topic(name)
    make_topic(kafka_broker, name, 1)
    produce_at_once(kafka_broker, name, orders(100, 130, 1))
    with pytest.raises(InputLost, match="is not the one that"):
        runner.catch_up()
    assert shown(runner) == 10


@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_log_that_is_away_while_a_micro_batch_is_planned_is_retried(
    runner: Runner, broker: Broker, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headwater.engine.batch.retry.MAX_BACKOFF_SECONDS", 2.0)
    failures: list[HeadwaterError] = []

    def watch() -> bool:
        failures.extend(query.error for query in runner.queries.values() if query.error is not None)
        return bool(failures)

    with running(runner), headwater.open(broker.url) as log:
        assert until(lambda: shown(runner) == 10, 60)
        broker.node.kill()
        try:
            assert until(watch, 60)
        finally:
            broker.node.start()
        produce_at_once(broker.servers, name, orders(10, 20, 1))
        assert until(lambda: watch() and shown(runner) == 20, 60)
        assert {type(error) for error in failures} == {LogUnavailable}
        assert not any(query.broken for query in runner.queries.values())
    check(runner, log, 20)
