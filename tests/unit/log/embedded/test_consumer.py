"""A member of a group: what it was given and has not committed is delivered again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from headwater.errors import TopicReplaced, UnknownTopic, UsageError
from headwater.log.consumer import Consumer
from headwater.log.embedded import EmbeddedLog
from headwater.log.position import Position

WAIT = 30
"""Seconds after which a test fails; nothing waits where something is there."""


@pytest.fixture
def log(tmp_path: Path) -> Iterator[EmbeddedLog]:
    with EmbeddedLog(tmp_path / "log", durability="os") as log:
        log.create_topic("t", "n INT", partitions=2)
        send(log, 0, 4)
        yield log


def send(log: EmbeddedLog, first: int, count: int) -> None:
    with log.producer("t") as producer:
        producer.send_batch([{"n": n} for n in range(first, first + count)], sequence=first)


def polled(consumer: Consumer, batches: int) -> list[int]:
    found = []
    for _ in range(batches):
        batch = consumer.poll(WAIT)
        assert batch is not None
        found += batch.column("n").to_pylist()
    return sorted(found)


def test_what_was_not_committed_is_delivered_again_to_the_next_member(log: EmbeddedLog) -> None:
    with log.consumer("t", "g") as consumer:
        assert polled(consumer, 2) == [0, 1, 2, 3]
        assert consumer.position().offsets == {0: 2, 1: 2}
        consumer.commit(Position("t", {0: 2, 1: 1}))
    with log.consumer("t", "g") as consumer:
        assert polled(consumer, 1) == [3]
        consumer.commit()
    with log.consumer("t", "g") as consumer:
        assert consumer.poll(0) is None
        assert consumer.assignment() == (0, 1)


def test_partitions_take_turns_so_that_a_busy_one_starves_no_other(log: EmbeddedLog) -> None:
    with log.consumer("t", "g", meta=True) as consumer:
        first = consumer.poll(WAIT)
        send(log, 4, 2)  # the partition that was just read has more
        second = consumer.poll(WAIT)
        assert first is not None
        assert second is not None
        assert first["_partition"][0] != second["_partition"][0]


def test_only_what_was_delivered_can_be_committed(log: EmbeddedLog) -> None:
    with log.consumer("t", "g") as consumer:
        polled(consumer, 1)
        with pytest.raises(UsageError, match="has not been delivered"):
            consumer.commit(Position("t", {0: 2, 1: 2}))
        with pytest.raises(UsageError, match='of topic "other"'):
            consumer.commit(Position("other", {0: 0}))
        with pytest.raises(TopicReplaced):
            consumer.commit(Position("t", {0: 0}, "another"))
    assert [each.committed for each in log.lag("g")] == [0, 0]


def test_a_start_holds_where_the_group_has_committed_nothing_and_not_later(log: EmbeddedLog) -> None:
    with log.consumer("t", "g", start="latest") as consumer:
        assert consumer.poll(0) is None
        send(log, 4, 2)
        assert polled(consumer, 2) == [4, 5]
        consumer.commit()
    send(log, 6, 2)
    with log.consumer("t", "g", start="latest") as consumer:
        assert polled(consumer, 2) == [6, 7]


def test_a_closed_consumer_is_refused_and_leaves_its_partitions_to_others(log: EmbeddedLog) -> None:
    consumer, other = log.consumer("t", "g"), log.consumer("t", "g")
    assert len(consumer.assignment()) + len(other.assignment()) == 2
    consumer.close()
    consumer.close()
    with pytest.raises(UsageError, match="closed"):
        consumer.poll(0)
    assert polled(other, 2) == [0, 1, 2, 3]
    other.close()


def test_a_topic_that_is_deleted_is_told_to_its_consumer(log: EmbeddedLog) -> None:
    with log.consumer("t", "g") as consumer:
        polled(consumer, 2)
        log.delete_topic("t")
        with pytest.raises(UnknownTopic):
            consumer.commit()
