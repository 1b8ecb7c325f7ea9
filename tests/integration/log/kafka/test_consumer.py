"""Members of Kafka groups: takeover, fencing, lost offsets; what was not committed comes again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest
from confluent_kafka import TopicPartition

from headwater.errors import Fenced, OffsetLost
from headwater.log import Log
from headwater.log.open import open as open_log
from kafka_kit import admin, filled, rows

pytestmark = pytest.mark.kafka

MEMBER = """
import sys
from headwater.log.open import open
consumer = open(sys.argv[1]).consumer(sys.argv[2], sys.argv[3])
for batch in consumer:
    print(len(batch), flush=True)
"""


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
