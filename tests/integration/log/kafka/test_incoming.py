"""Records of other tools are read here, and ours are plain records to them."""

from __future__ import annotations

import datetime
import decimal

import orjson
import pytest

from headwater import topic as topics
from headwater.errors import RowError, TopicError, TopicExists, UsageError
from headwater.log import Log
from headwater.log.open import open as open_log
from kafka_kit import admin, consume, make_topic, produce, rows, settings, until

pytestmark = pytest.mark.kafka


def test_our_records_are_plain_json_to_others(kafka: Log, kafka_broker: str, name: str) -> None:
    kafka.create_topic(name, "id BIGINT, city STRING", key="id")
    with kafka.producer(name, id="till") as producer:
        producer.send({"id": 7, "city": "Bern"}, headers={"trace": "abc"})
    [message] = consume(kafka_broker, name, 1)
    assert message.key() == b"7"
    assert orjson.loads(message.value()) == {"id": 7, "city": "Bern"}
    headers = dict(message.headers())
    assert headers["trace"] == b"abc"
    assert headers["hw.producer"] == b"till"
    assert headers["hw.sequence"] == b"0"


def test_foreign_records_of_a_declared_topic_are_typed(kafka: Log, kafka_broker: str, name: str) -> None:
    kafka.create_topic(name, "id BIGINT NOT NULL, at TIMESTAMP", key="id", event_time="at")
    value = b'{"at": "2026-01-02T03:04:05+01:00", "id": 7, "unknown": [1]}'
    produce(kafka_broker, name, [{"key": b"7", "value": value, "headers": {"h": b"1"}}])
    [row] = rows(kafka, name, meta=True)
    assert row["id"] == 7
    assert row["at"].isoformat() == row["_occurred"].isoformat() == "2026-01-02T02:04:05+00:00"
    assert row["_producer"] is row["_sequence"] is row["_sent"] is None
    assert row["_headers"] == [("h", b"1")]
    assert row["_received"] is not None


def test_a_foreign_topic_is_read_as_key_and_free_value(kafka: Log, kafka_broker: str, name: str) -> None:
    make_topic(kafka_broker, name, 2)
    places = produce(
        kafka_broker, name,
        [{"key": b"k", "value": b'{"a": [1]}', "partition": 1}, {"value": b"12", "partition": 1},
         {"key": b"k", "value": None, "partition": 1}],
    )  # fmt: skip
    assert [row["value"] for row in rows(kafka, name)] == ['{"a": [1]}', "12", None]
    found = rows(kafka, name, partition=1, meta=True)
    assert [(row["_partition"], row["_offset"]) for row in found] == places
    assert [row["key"] for row in found] == ["k", None, "k"]
    assert [row["_deleted"] for row in found] == [False, False, True]
    assert kafka.topic(name).partitions == 2
    assert name in [topic.name for topic in kafka.topics()]


def test_a_foreign_topic_takes_rows_only_after_it_is_declared(
    kafka: Log, kafka_broker: str, name: str
) -> None:
    make_topic(kafka_broker, name, 2)
    produce(kafka_broker, name, [{"value": b'{"id": 1}'}])
    with pytest.raises(UsageError, match="made by another tool"):
        kafka.producer(name)
    with pytest.raises(TopicError, match="made by another program"):
        kafka.alter_topic(name, partitions=3)
    with pytest.raises(TopicExists, match="made by another program") as refused:
        kafka.create_topic(name, "id BIGINT")
    assert "headwater topic adopt" in str(refused.value)
    before = settings(kafka_broker, name)
    assert kafka.adopt_topic(name, "id BIGINT").partitions == 2
    with kafka.producer(name) as producer:
        producer.send({"id": 2})
    assert sorted(row["id"] for row in rows(kafka, name)) == [1, 2]
    with pytest.raises(TopicError, match="made by another program"):
        kafka.alter_topic(name, retention="1 day")
    assert settings(kafka_broker, name) == before


def test_an_adopted_topic_is_declared_for_everybody_until_it_is_disowned(
    kafka: Log, kafka_broker: str, name: str
) -> None:
    make_topic(kafka_broker, name)
    produce(kafka_broker, name, [{"value": b'{"id": 1, "more": 2}'}])
    kafka.adopt_topic(name, "id STRING")
    kafka.adopt_topic(name, "id BIGINT")  # the first was wrong
    with open_log(kafka.url) as other:
        assert rows(other, name) == [{"id": 1}]
        other.disown_topic(name)
        assert rows(other, name) == [{"key": None, "value": '{"id": 1, "more": 2}'}]
        with pytest.raises(TopicError, match="was not adopted"):
            other.disown_topic(name)


def test_what_was_made_here_is_neither_adopted_nor_disowned(kafka: Log, name: str) -> None:
    kafka.create_topic(name, "id BIGINT")
    with pytest.raises(TopicExists, match="was made here"):
        kafka.adopt_topic(name, "id STRING")
    with pytest.raises(TopicError, match="was not adopted"):
        kafka.disown_topic(name)


def test_a_topic_is_read_as_one_reader_declares_it_and_no_other_sees_that(
    kafka: Log, kafka_broker: str, name: str
) -> None:
    make_topic(kafka_broker, name)
    produce(kafka_broker, name, [{"value": b'{"id": 1, "at": "2026-01-01T00:00:00Z"}'}])
    with open_log(kafka.url) as other:
        other.read_as(topics.create(name, "id BIGINT"))
        assert rows(other, name) == [{"id": 1}]
        with pytest.raises(TopicError, match="declared in two ways"):
            other.read_as(topics.create(name, "id STRING"))
    assert kafka.topic(name).schema.names == ["key", "value"]


def test_a_topic_made_again_by_others_has_not_the_old_declaration(
    kafka: Log, kafka_broker: str, name: str
) -> None:
    kafka.create_topic(name, "id BIGINT")
    admin(kafka_broker).delete_topics([name])[name].result(30)
    assert until(lambda: name not in admin(kafka_broker).list_topics(timeout=10).topics)
    make_topic(kafka_broker, name)
    assert kafka.topic(name).schema.names == ["key", "value"]


def test_an_unreadable_record_is_named_and_never_skipped(kafka: Log, kafka_broker: str, name: str) -> None:
    kafka.create_topic(name, "id BIGINT")
    produce(kafka_broker, name, [{"value": v} for v in (b'{"id": 1}', b'{"id": "x"}', b'{"id": 3}')])
    reading = kafka.read(name)
    assert next(reading).to_pylist() == [{"id": 1}]
    with pytest.raises(RowError, match="partition 0, offset 1") as told:
        next(reading)
    assert 'column "id" is BIGINT; got "x"' in str(told.value.detail)
    assert rows(kafka, name, start=2) == [{"id": 3}]
    with kafka.consumer(name, f"g-{name}") as consumer:
        batch = consumer.poll(20)
        assert batch is not None
        assert batch.to_pylist() == [{"id": 1}]
        for _ in range(2):
            with pytest.raises(RowError, match="offset 1"):
                consumer.poll(5)
        consumer.commit()
        assert consumer.position().offsets == {0: 1}
    findings = kafka.verify(name).findings
    assert [f.problem.split(";")[0] for f in findings] == [
        f'record of topic "{name}" cannot be read: partition 0, offset 1'
    ]


@pytest.mark.parametrize("value", [b"not json", b"\xff\xfe", b"", b"{}{}", b'{"id": 1.5}'])
def test_bytes_that_are_no_row_are_an_error(kafka: Log, kafka_broker: str, name: str, value: bytes) -> None:
    kafka.create_topic(name, "id BIGINT")
    produce(kafka_broker, name, [{"value": value}])
    with pytest.raises(RowError, match="offset 0"):
        rows(kafka, name)


def test_a_foreign_tombstone_has_the_columns_of_its_key(kafka: Log, kafka_broker: str, name: str) -> None:
    kafka.create_topic(name, "id BIGINT, at TIMESTAMP, n STRING NOT NULL", key="id,at", cleanup="compact")
    at = "2026-01-02T03:04:05.000006Z"
    produce(kafka_broker, name, [{"key": f'[5,"{at}"]'.encode(), "value": None}])
    [row] = rows(kafka, name)
    assert (row["id"], row["n"], row["_deleted"]) == (5, None, True)
    assert row["at"].isoformat() == "2026-01-02T03:04:05.000006+00:00"
    produce(kafka_broker, name, [{"key": b"no json", "value": None}])
    with pytest.raises(RowError, match="offset 1"):
        rows(kafka, name)


KEYS = ["k STRING", "k BIGINT", "k DATE", "k BINARY", "k BOOLEAN", "k DECIMAL(9,2)", "k TIMESTAMP"]


@pytest.mark.parametrize("schema", [*KEYS, "k STRING, k2 INT"])
def test_keys_go_where_kafkas_own_partitioner_puts_them(
    kafka: Log, kafka_broker: str, name: str, schema: str
) -> None:
    columns = [part.split()[0] for part in schema.split(", ")]
    kafka.create_topic(name, schema, key=columns, partitions=7)
    day, now = datetime.date(2026, 1, 1), datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    make = {
        "STRING": lambda i: "ü" * (i % 5) + str(i), "BIGINT": lambda i: i * 97 - 500, "INT": lambda i: i,
        "DATE": lambda i: day + datetime.timedelta(i), "BINARY": lambda i: bytes([i % 256]) * (i % 9),
        "BOOLEAN": lambda i: i % 2 == 0, "DECIMAL(9,2)": lambda i: decimal.Decimal(i) / 4,
        "TIMESTAMP": lambda i: now + datetime.timedelta(0, i, i),
    }  # fmt: skip
    with kafka.producer(name) as producer:
        kinds = [part.split()[1] for part in schema.split(", ")]
        producer.send_batch([{c: make[k](i) for c, k in zip(columns, kinds, strict=True)} for i in range(60)])
    ours = {(m.key(), m.partition()) for m in consume(kafka_broker, name, 60)}
    plain = name + "-plain"
    make_topic(kafka_broker, plain, 7)
    keys = sorted({key for key, _ in ours if key != b""})
    produce(kafka_broker, plain, [{"key": key} for key in keys], partitioner="murmur2_random")
    theirs = {(m.key(), m.partition()) for m in consume(kafka_broker, plain, len(keys))}
    assert {pair for pair in ours if pair[0] != b""} == theirs
