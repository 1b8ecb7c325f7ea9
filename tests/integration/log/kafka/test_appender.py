"""Producers on Kafka: fencing, transactions, and resending after a crash."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest
from confluent_kafka.admin import AdminClient

from headwater.errors import Fenced, RecordTooLarge
from headwater.log import Log
from kafka_kit import admin, rows, until

pytestmark = pytest.mark.kafka

CRASHING = """
import sys
from headwater.log.open import open
log = open(sys.argv[1])
producer = log.producer(sys.argv[2], id="till", linger="1 millisecond")
first = producer.sequence
for n in range(first, 100_000_000):
    producer.send({"n": n}, sequence=n)
    if n % 500 == 0:
        producer.flush()
        print(n, flush=True)
"""


def test_a_newer_producer_of_the_same_id_fences_the_older(kafka: Log, name: str) -> None:
    kafka.create_topic(name, "n BIGINT")
    old = kafka.producer(name, id="till")
    old.send_batch([{"n": 0}])
    old.flush()
    with kafka.producer(name, id="till") as new:
        assert new.sequence == 1
        old.send_batch([{"n": 99}])
        with pytest.raises(Fenced, match='producer "till" of topic'):
            old.flush()
        new.send_batch([{"n": 1}])
        new.flush()
        with pytest.raises(Fenced):
            old.send_batch([{"n": 99}])
    with pytest.raises(Fenced):
        old.close()
    assert [row["n"] for row in rows(kafka, name)] == [0, 1]


def test_producers_of_other_ids_and_topics_are_not_fenced(kafka: Log, name: str) -> None:
    kafka.create_topic(name, "n BIGINT")
    kafka.create_topic(name + ".b", "n BIGINT")
    with (
        kafka.producer(name, id="a") as a,
        kafka.producer(name, id="b") as b,
        kafka.producer(name + ".b", id="a") as c,
    ):
        for n, producer in enumerate((a, b, c, a)):
            producer.send_batch([{"n": n}])
            producer.flush()
    assert [row["n"] for row in rows(kafka, name)] == [0, 1, 3]


def test_what_was_sent_before_is_left_out(kafka: Log, name: str) -> None:
    kafka.create_topic(name, "n BIGINT", partitions=3)
    with kafka.producer(name, id="till") as producer:
        producer.send_batch([{"n": n} for n in range(100)], sequence=0)
    with kafka.producer(name, id="till") as producer:
        assert producer.sequence == 100
        producer.send_batch([{"n": n} for n in range(150)], sequence=0)
    assert sorted(row["n"] for row in rows(kafka, name)) == list(range(150))
    assert kafka.verify(name).ok


def test_sequences_are_found_again_after_the_broker_forgot_them(
    kafka: Log, kafka_broker: str, name: str
) -> None:
    kafka.create_topic(name, "n BIGINT", partitions=2)
    with kafka.producer(name, id="till") as producer:
        producer.send_batch([{"n": n} for n in range(10)])
    group = f"__headwater.producer.{name}.till"
    admin(kafka_broker).delete_consumer_groups([group])[group].result(30)  # as after a week without use
    with kafka.producer(name, id="till") as producer:
        assert producer.sequence == 10
        producer.send_batch([{"n": n} for n in range(12)], sequence=0)
    assert sorted(row["n"] for row in rows(kafka, name)) == list(range(12))


def test_internal_groups_and_topics_are_hidden(kafka: Log, name: str) -> None:
    kafka.create_topic(name, "n BIGINT")
    with kafka.producer(name, id="till") as producer:
        producer.send({"n": 1})
    assert not [group for group in kafka.groups() if group.startswith("__")]
    assert not [topic.name for topic in kafka.topics() if topic.name.startswith("__")]


def test_kill_9_and_resending_neither_loses_nor_doubles(kafka: Log, name: str) -> None:
    kafka.create_topic(name, "n BIGINT", partitions=3)
    acknowledged = -1
    for _ in range(4):
        child = subprocess.Popen(
            [sys.executable, "-c", CRASHING, kafka.url, name], stdout=subprocess.PIPE, text=True
        )
        assert child.stdout is not None
        deadline = time.monotonic() + 1.5
        while time.monotonic() < deadline or acknowledged < 500:
            acknowledged = max(acknowledged, int(child.stdout.readline()))
        os.kill(child.pid, signal.SIGKILL)
        told = [int(line) for line in child.stdout.read().split()]
        acknowledged = max([acknowledged, *told])
        child.wait()
        child.stdout.close()
    with kafka.producer(name, id="till") as producer:
        end = producer.sequence
        assert end > acknowledged
        producer.send_batch(
            [{"n": n} for n in range(max(0, end - 2000), end + 10)], sequence=max(0, end - 2000)
        )
    assert sorted(row["n"] for row in rows(kafka, name)) == list(range(end + 10))
    assert kafka.verify(name).ok


def test_an_anonymous_producer_goes_on_after_its_client_failed(kafka: Log, name: str) -> None:
    kafka.create_topic(name, "n BIGINT", partitions=2)
    with kafka.producer(name) as producer:
        producer.send_batch([{"n": n} for n in range(10)])
        appender = producer._appender
        appender._last = {}  # type: ignore[attr-defined]  # as if no acknowledgement had come
        appender._reached = dict.fromkeys(range(2), 0)  # type: ignore[attr-defined]
        appender._client = None  # type: ignore[attr-defined]
        producer.send_batch([{"n": n} for n in range(12)], sequence=0)
    assert sorted(row["n"] for row in rows(kafka, name)) == list(range(12))


def test_a_users_header_may_have_any_name(kafka: Log, name: str) -> None:
    kafka.create_topic(name, "n BIGINT")
    with kafka.producer(name) as producer:
        producer.send({"n": 1}, headers={"hw.sequence": "mine", "trace": "abc"})
    [row] = rows(kafka, name, meta=True)
    assert row["_sequence"] == 0
    assert row["_headers"] == [("hw.sequence", b"mine"), ("trace", b"abc")]


def test_a_record_that_is_too_large_as_json_is_refused_before_anything_is_sent(kafka: Log, name: str) -> None:
    kafka.create_topic(name, "raw ARRAY<BOOLEAN>")
    with kafka.producer(name) as producer:
        producer.send_batch([{"raw": []}, {"raw": [False] * 2_000_000}])
        with pytest.raises(RecordTooLarge, match="too large"):
            producer.flush()
        producer.send({"raw": [True]})
    assert rows(kafka, name) == [{"raw": [True]}]


def test_deleting_a_topic_forgets_its_producers_and_groups(kafka: Log, kafka_broker: str, name: str) -> None:
    kafka.create_topic(name, "n BIGINT")
    with kafka.producer(name, id="till") as producer:
        producer.send_batch([{"n": 1}])
    with kafka.consumer(name, f"g-{name}") as consumer:
        assert consumer.poll(20) is not None
        consumer.commit()
    kafka.delete_topic(name)
    assert until(
        lambda: f"g-{name}" not in kafka.groups() or not _committed(admin(kafka_broker), f"g-{name}")
    )
    kafka.create_topic(name, "n BIGINT")
    with kafka.producer(name, id="till") as producer:
        assert producer.sequence == 0


def _committed(client: AdminClient, group: str) -> list[object]:
    from confluent_kafka import ConsumerGroupTopicPartitions

    asked = client.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])
    return list(asked[group].result(30).topic_partitions)
