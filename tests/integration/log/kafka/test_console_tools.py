"""Kafka's own command-line tools: they write what we read, and read what we write."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from headwater import topic as topics
from headwater.log import Log
from kafka_broker import Missing, fetch_tools, run_tool
from kafka_kit import make_topic, rows

pytestmark = pytest.mark.kafka
TOOLS = "org.apache.kafka.tools"


@pytest.fixture(scope="module", autouse=True)
def tools() -> None:
    try:
        fetch_tools()
    except Missing as reason:
        pytest.skip(f"Kafka tests: {reason}")


def console_produce(servers: str, topic: str, lines: list[str]) -> None:
    run_tool(
        f"{TOOLS}.ConsoleProducer", "--bootstrap-server", servers, "--topic", topic,
        "--reader-property", "parse.key=true", "--reader-property", "key.separator=|",
        "--reader-property", "null.marker=NULL", stdin="\n".join(lines).encode(),
    )  # fmt: skip


def console_consume(servers: str, topic: str, count: int, *how: str) -> list[list[str]]:
    shown = [f"print.{what}=true" for what in ("key", "headers", "partition")]
    properties = [each for name in shown for each in ("--formatter-property", name)]
    told = run_tool(
        f"{TOOLS}.consumer.ConsoleConsumer", "--bootstrap-server", servers, "--topic", topic,
        "--from-beginning", "--max-messages", str(count), "--timeout-ms", "30000", *properties, *how,
    )  # fmt: skip
    return [line.split("\t") for line in told.splitlines()]


def test_what_the_console_producer_writes_is_read(kafka: Log, kafka_broker: str, name: str) -> None:
    make_topic(kafka_broker, name, 2)
    console_produce(
        kafka_broker,
        name,
        [
            'ada|{"id": "ada", "n": 1, "price": "12.50", "at": "2026-01-02T03:04:05Z", "agent": "console"}',
            'bob|{"id": "bob", "n": null, "price": 3.25}',
            'café|{"id": "café", "tags": ["a", "b"]}',
        ],
    )
    columns = "id STRING, n BIGINT, price DECIMAL(10,2), at TIMESTAMP, tags ARRAY<STRING>"
    kafka.read_as(topics.create(name, columns, key="id"))
    found = {row["id"]: row for row in rows(kafka, name)}
    at = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert found == {
        "ada": {"id": "ada", "n": 1, "price": Decimal("12.50"), "at": at, "tags": None},
        "bob": {"id": "bob", "n": None, "price": Decimal("3.25"), "at": None, "tags": None},
        "café": {"id": "café", "n": None, "price": None, "at": None, "tags": ["a", "b"]},
    }


def test_tombstones_of_the_console_producer_delete(kafka: Log, kafka_broker: str, name: str) -> None:
    kafka.create_topic(name, "id STRING, n BIGINT", key="id", cleanup="compact")
    console_produce(kafka_broker, name, ['ada|{"id": "ada", "n": 1}', "ada|NULL"])
    found = [(row["id"], row["n"], row["_deleted"]) for row in rows(kafka, name)]
    assert found == [("ada", 1, False), ("ada", None, True)]


def test_what_we_write_is_read_by_the_console_consumer(kafka: Log, kafka_broker: str, name: str) -> None:
    kafka.create_topic(name, "id STRING, n BIGINT, at TIMESTAMP", key="id", partitions=3)
    at = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    with kafka.producer(name, id="till") as producer:
        producer.send({"id": "ada", "n": 1, "at": at}, headers={"trace": "f00d"})
        producer.send({"id": "bob", "n": None, "at": None})
        producer.send({"id": "café", "n": 3})
    found = console_consume(kafka_broker, name, 3, "--isolation-level", "read_committed")
    placed = {row["id"]: row["_partition"] for row in rows(kafka, name, meta=True)}
    assert {key: json.loads(value) for *_, key, value in found} == {
        "ada": {"id": "ada", "n": 1, "at": "2026-01-02T03:04:05.000000Z"},
        "bob": {"id": "bob"},  # a null column is absent
        "café": {"id": "café", "n": 3},
    }
    assert {key: int(partition.removeprefix("Partition:")) for partition, _, key, _ in found} == placed
    [headers] = [headers for _, headers, key, _ in found if key == "ada"]
    assert "trace:f00d" in headers and "hw.producer:till" in headers
