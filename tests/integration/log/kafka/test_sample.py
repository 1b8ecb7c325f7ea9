"""A topic that nobody has declared: its newest records tell how it could be, and the line does work."""

from __future__ import annotations

import uuid
from typing import Any

import orjson
import pytest
from click.testing import CliRunner
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from headwater import Pipeline
from headwater.cli import main
from headwater.errors import UnknownTopic, UsageError
from headwater.log import Log
from headwater.log.open import open as open_log
from kafka_kit import make_topic, produce, produce_at_once, rows

pytestmark = pytest.mark.kafka
NOON = 1_767_268_800_000


def declared(url: str, line: str) -> Any:
    """Return what a line declares, pasted into a pipeline."""
    return eval(f"web.{line}", {"web": Pipeline("web", log=url)}).declared


def test_the_line_that_describe_prints_reads_the_topic(kafka: Log, kafka_broker: str, name: str) -> None:
    make_topic(kafka_broker, name, 3)
    values = [{"user": f"u{n % 5}", "amount": n / 4, "at": NOON + n} for n in range(1000)]
    old = [{"value": b"not JSON at all", "partition": n} for n in range(3)]
    produce_at_once(kafka_broker, name, old * 50)
    records = [{"key": each["user"].encode(), "value": orjson.dumps(each)} for each in values]
    produce_at_once(kafka_broker, name, records)
    done = CliRunner().invoke(main, ["topic", "describe", name, "--log", kafka.url])
    assert done.exit_code == 0, done.output
    assert "nobody has declared it; by its newest 100 records" in done.output
    [line] = [line.strip() for line in done.output.splitlines() if line.startswith("  source(")]
    assert line.endswith('key="user", event_time="timestamp_millis(at)")')
    with open_log(kafka.url) as other:
        other.read_as(declared(kafka.url, line))
        newest = [row for n in range(3) for row in rows(other, name, partition=n, start=50, meta=True)]
        assert len(newest) == 1000
        assert {row["user"] for row in newest} == {f"u{n}" for n in range(5)}
    told = CliRunner().invoke(main, ["topic", "describe", name, "--log", kafka.url, "--format", "ndjson"])
    assert orjson.loads(told.output)["guess"]["line"] == line


def test_a_declared_topic_is_not_guessed(kafka: Log, kafka_broker: str, name: str) -> None:
    make_topic(kafka_broker, name)
    made = kafka.guess_declaration(name)
    assert made is not None
    assert made.notes == ("it has no records with a value",)
    kafka.adopt_topic(name, "a INT")
    assert kafka.guess_declaration(name) is None
    with pytest.raises(UnknownTopic):
        kafka.guess_declaration("nowhere")


def test_whoever_uses_a_topic_without_a_declaration_is_told_of_describe(
    kafka: Log, kafka_broker: str, name: str
) -> None:
    make_topic(kafka_broker, name)
    with pytest.raises(UsageError) as refused:
        kafka.producer(name)
    assert f"headwater topic describe {name}" in str(refused.value.hint)


def test_columns_of_avro_are_those_of_its_schema(kafka_broker: str, schema_registry: str, name: str) -> None:
    make_topic(kafka_broker, name)
    fields = [
        {"name": "id", "type": "long"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "state", "type": ["null", {"type": "enum", "name": "State", "symbols": ["NEW"]}]},
    ]
    schema = {"type": "record", "name": f"r{uuid.uuid4().hex[:6]}", "fields": fields}
    with SchemaRegistryClient({"url": schema_registry}) as client:
        value = AvroSerializer(client, orjson.dumps(schema).decode())
        key = AvroSerializer(client, '"string"')
        row = {"id": 7, "at": NOON, "state": "NEW"}
        record = {
            "key": key("ada", SerializationContext(name, MessageField.KEY)),
            "value": value(row, SerializationContext(name, MessageField.VALUE)),
        }
    produce(kafka_broker, name, [record])
    url = f"kafka://{kafka_broker}?schema.registry.url={schema_registry}"
    with open_log(url) as log:
        made = log.guess_declaration(name)
        assert made is not None
        assert made.schema == "key STRING, id BIGINT, at TIMESTAMP, state STRING"
        assert (made.key, made.format, made.key_format, made.event_time) == (("key",), "avro", "avro", "at")
        log.read_as(declared(url, made.line))
        [found] = rows(log, name)
        assert (found["key"], found["id"], found["state"]) == ("ada", 7, "NEW")
    with open_log(f"kafka://{kafka_broker}") as blind:
        made = blind.guess_declaration(name)
        assert made is not None
        assert "no schema registry is named" in made.notes[0]
