"""Records of other programs that are no JSON, without a registry: read by their format, or named."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from fastavro import parse_schema, schemaless_writer

from headwater import topic as topics
from headwater.errors import RowError, TopicError, UsageError
from headwater.log import Log
from headwater.log.open import open as open_log
from kafka_kit import make_topic, produce, rows

pytestmark = pytest.mark.kafka

FIELDS = [{"name": "id", "type": "int"}, {"name": "name", "type": "string"}]
ORDER = {"type": "record", "name": "order", "fields": FIELDS}


def avro(schema: Any, value: Any) -> bytes:
    stream = io.BytesIO()
    schemaless_writer(stream, parse_schema(schema), value)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("format", "columns", "values", "found"),
    [
        ("csv", "id BIGINT, name STRING", [b'1,"a, b"', b"2,"],
         [{"id": 1, "name": "a, b"}, {"id": 2, "name": None}]),
        ("text", "line STRING", [b"GET /\n", b""], [{"line": "GET /\n"}, {"line": ""}]),
        ("bytes", "body BINARY", [b"\xff\0", b""], [{"body": b"\xff\0"}, {"body": b""}]),
        (f"avro:{json.dumps(ORDER)}", "name STRING, id BIGINT", [avro(ORDER, {"id": 7, "name": "x"})],
         [{"name": "x", "id": 7}]),
    ],
)  # fmt: skip
def test_values_are_read_by_their_format(
    kafka: Log, kafka_broker: str, name: str, format: str, columns: str, values: list[bytes], found: list[Any]
) -> None:
    make_topic(kafka_broker, name)
    produce(kafka_broker, name, [{"value": value} for value in values])
    with open_log(kafka.url) as other:
        other.read_as(topics.create(name, columns, format=format))
        assert rows(other, name) == found
        with other.consumer(name, f"g-{name}") as consumer:
            batch = consumer.poll(20)
            assert batch is not None
            assert batch.to_pylist() == found
        assert other.verify(name).ok


def test_an_adopted_format_holds_for_everybody_and_the_topic_can_only_be_read(
    kafka: Log, kafka_broker: str, name: str, tmp_path: Path
) -> None:
    make_topic(kafka_broker, name)
    produce(kafka_broker, name, [{"value": avro(ORDER, {"id": 7, "name": "x"})}])
    (tmp_path / "order.avsc").write_text(json.dumps(ORDER))
    kafka.adopt_topic(name, "id INT, name STRING", format=f"avro:{tmp_path / 'order.avsc'}")
    (tmp_path / "order.avsc").unlink()
    with open_log(kafka.url) as other:
        assert rows(other, name) == [{"id": 7, "name": "x"}]
        assert other.topic(name).settings()["format"].startswith('avro:{"type":"record"')
        with pytest.raises(UsageError, match="a format that is only read") as refused:
            other.producer(name)
        assert refused.value.detail == "its values are avro"


def test_a_record_that_is_not_of_the_format_is_named_and_never_skipped(
    kafka: Log, kafka_broker: str, name: str
) -> None:
    make_topic(kafka_broker, name)
    produce(kafka_broker, name, [{"value": value} for value in (b"1,a", b'2,"b', b"3,c", b"x,d")])
    kafka.adopt_topic(name, "id BIGINT, name STRING", format="csv")
    reading = kafka.read(name)
    assert next(reading).to_pylist() == [{"id": 1, "name": "a"}]
    with pytest.raises(RowError, match="partition 0, offset 1") as told:
        next(reading)
    assert "not one CSV record" in str(told.value.detail)
    assert [finding.problem.split(";")[0] for finding in kafka.verify(name).findings] == [
        f'record of topic "{name}" cannot be read: partition 0, offset {offset}' for offset in (1, 3)
    ]


@pytest.mark.parametrize(
    ("key_format", "key", "schema"),
    [("json", b'{"id": 5}', "id BIGINT"), ("text", b"5", "id STRING"), ('avro:"long"', b"\x0a", "id BIGINT")],
)
def test_the_columns_of_the_key_are_read_from_the_key(
    kafka: Log, kafka_broker: str, name: str, key_format: str, key: bytes, schema: str
) -> None:
    make_topic(kafka_broker, name)
    records = [{"key": key, "value": b"x"}, {"key": key, "value": None}, {"key": key, "value": b""}]
    produce(kafka_broker, name, records)
    kafka.read_as(
        topics.create(
            name, f"line STRING, {schema}", key="id", cleanup="compact", format="text", key_format=key_format
        )
    )
    id = "5" if key_format == "text" else 5
    assert rows(kafka, name) == [
        {"line": "x", "id": id, "_deleted": False},
        {"line": None, "id": id, "_deleted": True},
        {"line": "", "id": id, "_deleted": False},
    ]
    produce(kafka_broker, name, [{"value": b"no key"}, {"key": b"\xff", "value": b"no text, JSON or long"}])
    for offset in (3, 4):
        with pytest.raises(RowError, match=f"offset {offset}"):
            rows(kafka, name, start=offset)


def test_a_declaration_that_cannot_be_read_is_refused(kafka: Log, kafka_broker: str, name: str) -> None:
    make_topic(kafka_broker, name)
    with pytest.raises(UsageError, match="no schema registry is named") as refused:
        kafka.adopt_topic(name, "id INT", format="avro")
    assert "schema.registry.url=" in str(refused.value.hint)
    with pytest.raises(TopicError, match="is not Avro"):
        kafka.read_as(topics.create(name, "id INT", format='avro:{"type":"x"}'))
