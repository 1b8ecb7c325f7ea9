"""Groups on Kafka: takeover, fencing, lost offsets, moving."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition

from headwater.errors import Fenced, OffsetLost, TopicReplaced, UsageError
from headwater.log import Log
from headwater.log.open import open as open_log
from kafka_kit import admin, rows

pytestmark = pytest.mark.kafka

MEMBER = """
import sys
from headwater.log.open import open
consumer = open(sys.argv[1]).consumer(sys.argv[2], sys.argv[3])
for batch in consumer:
    print(len(batch), flush=True)
"""


def filled(kafka: Log, name: str, count: int = 10, partitions: int = 1) -> None:
    kafka.create_topic(name, "n BIGINT", partitions=partitions)
    with kafka.producer(name) as producer:
        producer.send_batch([{"n": n} for n in range(count)])


def test_a_member_that_polls_too_late_is_fenced(kafka: Log, kafka_broker: str, name: str) -> None:
    filled(kafka, name)
    impatient = {"session.timeout.ms": 6000, "max.poll.interval.ms": 6000}
    with (
        open_log(f"kafka://{kafka_broker}", **impatient) as other,
        other.consumer(name, f"g-{name}") as slow,
    ):
        assert slow.poll(20) is not None
        with kafka.consumer(name, f"g-{name}") as quick:
            batch = quick.poll(40)
            assert batch is not None
            assert len(batch) == 10
            with pytest.raises(Fenced, match="no longer owns partition 0"):
                slow.commit()
            quick.commit()
        assert [lag.records for lag in kafka.lag(f"g-{name}")] == [0]


def test_a_stopped_process_is_replaced_and_its_commit_refused(kafka: Log, name: str) -> None:
    filled(kafka, name)
    child = subprocess.Popen(
        [sys.executable, "-c", MEMBER, kafka.url, name, f"g-{name}"], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "10\n"
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    child.stdout.close()
    started = time.monotonic()
    with kafka.consumer(name, f"g-{name}") as heir:
        batch = heir.poll(40)
        assert batch is not None
        assert batch.column("n").to_pylist() == list(range(10))
    assert time.monotonic() - started < 25


def test_a_commit_while_partitions_are_given_up_is_not_lost(kafka: Log, name: str) -> None:
    filled(kafka, name, partitions=2)
    group = f"g-{name}"
    with kafka.consumer(name, group) as first:
        seen = 0
        while seen < 10:
            batch = first.poll(20)
            assert batch is not None
            seen += len(batch)
        with kafka.consumer(name, group) as second:
            time.sleep(2)  # the group has asked the first member for a partition
            first.commit()
            for _ in range(100):
                assert first.poll(0.05) is None
                assert second.poll(0.05) is None
                if len(first.assignment()) == len(second.assignment()) == 1:
                    break
            assert sorted(first.assignment() + second.assignment()) == [0, 1]


def test_a_living_group_cannot_be_moved(kafka: Log, name: str) -> None:
    filled(kafka, name)
    with kafka.consumer(name, f"g-{name}") as consumer:
        assert consumer.poll(20) is not None
        consumer.commit()
        with pytest.raises(UsageError, match="living members"):
            kafka.seek(f"g-{name}", name, "earliest")
    assert kafka.seek(f"g-{name}", name, 4).offsets == {0: 4}
    with kafka.consumer(name, f"g-{name}") as consumer:
        batch = consumer.poll(20)
        assert batch is not None
        assert batch.column("n").to_pylist() == [4, 5, 6, 7, 8, 9]


def test_an_offset_that_is_gone_is_told_with_what_was_missed(
    kafka: Log, kafka_broker: str, name: str
) -> None:
    filled(kafka, name)
    kafka.seek(f"g-{name}", name, 2)
    [gone] = admin(kafka_broker).delete_records([TopicPartition(name, 0, 6)]).values()
    gone.result(30)
    with kafka.consumer(name, f"g-{name}") as consumer:
        for _ in range(2):
            with pytest.raises(OffsetLost) as told:
                consumer.poll(20)
            assert (told.value.missed, told.value.earliest) == (4, 6)
    with pytest.raises(OffsetLost):
        rows(kafka, name, start=2)
    assert [row["n"] for row in rows(kafka, name)] == [6, 7, 8, 9]
    with kafka.consumer(name, f"other-{name}") as other:
        batch = other.poll(20)
        assert batch is not None
        assert len(batch) == 4


def test_a_start_at_the_end_is_kept_when_the_partition_moves(kafka: Log, name: str) -> None:
    filled(kafka, name)
    with kafka.consumer(name, f"g-{name}", start="latest") as first:
        assert first.poll(1) is None
    with kafka.producer(name) as producer:
        producer.send_batch([{"n": 10}])
    with kafka.consumer(name, f"g-{name}", start="latest") as second:
        batch = second.poll(20)
        assert batch is not None
        assert batch.column("n").to_pylist() == [10]


def test_lag_is_none_behind_the_markers_of_transactions(kafka: Log, name: str) -> None:
    kafka.create_topic(name, "n BIGINT")
    with kafka.producer(name, id="till") as producer:
        for n in range(3):
            producer.send_batch([{"n": n}])
    with kafka.consumer(name, f"g-{name}") as consumer:
        seen = 0
        while (batch := consumer.poll(3)) is not None:
            seen += len(batch)
        consumer.commit()
    assert seen == 3
    assert [lag.records for lag in kafka.lag(f"g-{name}")] == [0]


def test_reading_from_a_time_starts_at_the_time_of_receipt(kafka: Log, name: str) -> None:
    filled(kafka, name, 3)
    time.sleep(0.05)
    between = datetime.now(UTC)
    time.sleep(0.05)
    with kafka.producer(name) as producer:
        producer.send_batch([{"n": 100}])
    assert [row["n"] for row in rows(kafka, name, start=between)] == [100]
    assert [row["n"] for row in rows(kafka, name, end=between)] == [0, 1, 2]
    assert rows(kafka, name, start=datetime(2100, 1, 1, tzinfo=UTC)) == []


def committed(broker: str, group: str) -> list[TopicPartition]:
    asked = admin(broker).list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])
    return list(asked[group].result(30).topic_partitions)


def leave(broker: str, group: str, *places: TopicPartition) -> None:
    """Commit as somebody did before the topic was made again, and whom the broker has not forgotten."""
    asked = admin(broker).alter_consumer_group_offsets([ConsumerGroupTopicPartitions(group, list(places))])
    asked[group].result(30)


def test_what_is_committed_tells_of_which_topic_it_is(kafka: Log, kafka_broker: str, name: str) -> None:
    filled(kafka, name)
    own = f"headwater.topic={kafka.topic(name).id}"
    kafka.seek(f"g-{name}", name, 3)
    assert [(each.offset, each.metadata) for each in committed(kafka_broker, f"g-{name}")] == [(3, own)]
    with kafka.consumer(name, f"g-{name}") as consumer:
        assert consumer.poll(20) is not None
        consumer.commit()
    assert [(each.offset, each.metadata) for each in committed(kafka_broker, f"g-{name}")] == [(10, own)]


def test_offsets_of_a_topic_before_are_refused_and_those_of_other_tools_are_not(
    kafka: Log, kafka_broker: str, name: str
) -> None:
    filled(kafka, name)
    leave(kafka_broker, f"g-{name}", TopicPartition(name, 0, 4, "headwater.topic=another"))
    with kafka.consumer(name, f"g-{name}") as consumer:
        for _ in range(2):
            with pytest.raises(TopicReplaced) as told:
                consumer.poll(20)
        assert f"headwater seek g-{name} {name} --to earliest" in str(told.value.hint)
    assert kafka.seek(f"g-{name}", name, "earliest").offsets == {0: 0}
    leave(kafka_broker, f"other-{name}", TopicPartition(name, 0, 4, "of another tool"))
    for group, count in ((f"g-{name}", 10), (f"other-{name}", 6)):
        with kafka.consumer(name, group) as consumer:
            batch = consumer.poll(20)
            assert batch is not None
            assert len(batch) == count


def test_a_named_producer_does_not_take_its_records_of_a_topic_before_for_stored(
    kafka: Log, kafka_broker: str, name: str
) -> None:
    kafka.create_topic(name, "n BIGINT")
    numbers = f"__headwater.producer.{name}.shop"
    leave(kafka_broker, numbers, TopicPartition(name, 0, 100, "headwater.topic=another"))
    with kafka.producer(name, "shop") as producer:
        producer.send_batch([{"n": n} for n in range(5)])
    assert [row["n"] for row in rows(kafka, name)] == list(range(5))
    with kafka.producer(name, "shop") as again:
        assert again.sequence > 1
