from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

import pytest

from contract_kit import Backend, drain
from headwater import Log, Position
from headwater.errors import Fenced, HeadwaterError, OffsetLost, TopicReplaced, UsageError


@pytest.fixture
def topic(log: Log, name: str) -> str:
    log.create_topic(name, "n BIGINT", partitions=4)
    with log.producer(name) as producer:
        producer.send_batch([{"n": n} for n in range(100)])
    return name


@pytest.fixture
def group(name: str) -> str:
    return f"group-{name}"


def test_a_member_reads_everything_and_goes_on_where_it_committed(log: Log, topic: str, group: str) -> None:
    with log.consumer(topic, group) as consumer:
        assert sorted(row["n"] for row in drain(consumer, 100)) == list(range(100))
        consumer.commit()
    with log.producer(topic) as producer:
        producer.send({"n": 100})
    with log.consumer(topic, group) as consumer:
        assert [row["n"] for row in drain(consumer, 1)] == [100]


def test_what_was_not_committed_is_delivered_again(log: Log, topic: str, group: str) -> None:
    with log.consumer(topic, group) as consumer:
        assert len(drain(consumer, 100)) == 100
    with log.consumer(topic, group) as consumer:
        assert len(drain(consumer, 100)) == 100


def test_a_batch_holds_one_partition_in_order(log: Log, topic: str, group: str) -> None:
    with log.consumer(topic, group, meta=True) as consumer:
        seen = 0
        while seen < 100:
            batch = consumer.poll(10)
            assert batch is not None
            assert len(set(batch.column("_partition").to_pylist())) == 1
            offsets = batch.column("_offset").to_pylist()
            assert offsets == sorted(offsets)
            partition = batch.column("_partition")[0].as_py()
            assert consumer.position().offsets[partition] == offsets[-1] + 1
            seen += len(batch)


def test_groups_do_not_disturb_each_other(log: Log, topic: str, group: str) -> None:
    with log.consumer(topic, group) as one, log.consumer(topic, group + "-b") as other:
        assert len(drain(one, 100)) == 100
        assert len(drain(other, 100)) == 100
        one.commit()
    assert sum(lag.records for lag in log.lag(group)) == 0
    with log.consumer(topic, group + "-b") as other:
        assert len(drain(other, 100)) == 100
        other.commit()
    assert {group, group + "-b"} <= set(log.groups())


def test_partitions_are_shared_among_the_members(backend: Backend, topic: str, group: str) -> None:
    with backend.log.consumer(topic, group) as one, backend.again().consumer(topic, group) as two:
        for _ in range(100):
            one.poll(0.1)
            two.poll(0.1)
            if len(one.assignment()) == len(two.assignment()) == 2:
                break
        assert sorted(one.assignment() + two.assignment()) == [0, 1, 2, 3]
        assert len(one.assignment()) == 2


def test_a_member_that_leaves_is_replaced(backend: Backend, topic: str, group: str) -> None:
    one = backend.log.consumer(topic, group)
    with backend.again().consumer(topic, group) as two:
        for _ in range(100):
            one.poll(0.1)
            two.poll(0.1)
            if len(one.assignment()) == len(two.assignment()) == 2:
                break
        one.close()
        for _ in range(100):
            two.poll(0.1)
            if len(two.assignment()) == 4:
                break
        assert two.assignment() == (0, 1, 2, 3)


def test_a_commit_after_losing_a_partition_is_fenced(
    backend: Backend, topic: str, group: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A living member that has not polled for too long loses its partitions."""
    impatient = {"session.timeout.ms": 6000, "max.poll.interval.ms": 6000} if backend.kind == "kafka" else {}
    with backend.again(**impatient).consumer(topic, group) as slow:
        assert len(drain(slow, 100)) == 100
        monkeypatch.setattr("headwater.log.embedded.groups.MAX_POLL_SECONDS", 0.0)
        with backend.again(**impatient).consumer(topic, group) as quick:
            deadline = time.monotonic() + 120
            while len(quick.assignment()) < 4 and time.monotonic() < deadline:
                quick.poll(0.5)
            assert quick.assignment() == (0, 1, 2, 3)
            with pytest.raises(Fenced, match="no longer owns"):
                slow.commit()


def test_lag_counts_records_and_time(log: Log, topic: str, group: str) -> None:
    with log.consumer(topic, group) as consumer:
        drain(consumer, 100)
        consumer.commit()
    assert [(lag.records, lag.behind) for lag in log.lag(group)] == [(0, timedelta())] * 4
    with log.producer(topic) as producer:
        producer.send_batch([{"n": n} for n in range(8)])
    lags = log.lag(group)
    assert [(lag.topic, lag.partition, lag.records) for lag in lags] == [(topic, p, 2) for p in range(4)]
    assert all(timedelta() < lag.behind < timedelta(minutes=1) for lag in lags)
    assert all(lag.end - lag.committed == 2 for lag in lags)


def test_a_group_can_be_moved(log: Log, topic: str, group: str) -> None:
    with log.consumer(topic, group) as consumer:
        drain(consumer, 100)
        consumer.commit()
    moves = {"earliest": 100, "latest": 0, 20: 20, datetime(2020, 1, 1, tzinfo=UTC): 100}
    for to, left in moves.items():
        position = log.seek(group, topic, to)
        assert sum(lag.records for lag in log.lag(group)) == left
        assert position.topic == topic
        assert position.offsets == {lag.partition: lag.committed for lag in log.lag(group)}
    log.seek(group, topic, 20)
    with log.consumer(topic, group) as consumer:
        assert len(drain(consumer, 20)) == 20


def test_an_unknown_group_is_an_error(log: Log, topic: str) -> None:
    with pytest.raises(UsageError, match='no group "nobody"'):
        log.lag("nobody")


def test_a_group_starts_where_it_is_told_when_nothing_is_committed(log: Log, topic: str, group: str) -> None:
    with log.consumer(topic, group, start="latest") as consumer:
        assert consumer.poll(1) is None
        for _ in range(100):
            if len(consumer.assignment()) == 4:
                break
            consumer.poll(0.1)
        consumer.poll(0.2)
        with log.producer(topic) as producer:
            producer.send({"n": 100})
        assert [row["n"] for row in drain(consumer, 1)] == [100]


def test_an_invalid_group_name_is_refused(log: Log, topic: str) -> None:
    with pytest.raises(HeadwaterError, match="invalid group name"):
        log.consumer(topic, "a/b")


def test_a_consumer_that_never_polled_leaves_nothing_behind(log: Log, topic: str, group: str) -> None:
    consumer = log.consumer(topic, group)
    consumer.close()
    consumer.close()
    with pytest.raises(UsageError, match="closed"):
        consumer.poll(0)
    with log.consumer(topic, group) as other:
        assert len(drain(other, 100)) == 100


def test_a_part_of_what_was_delivered_can_be_committed(log: Log, topic: str, group: str) -> None:
    with log.consumer(topic, group) as consumer:
        drain(consumer, 100)
        consumer.commit(Position(topic, {0: 10, 1: 25}))
    done = {lag.partition: lag.records for lag in log.lag(group)}
    assert done == {0: 15, 1: 0, 2: 25, 3: 25}


def test_a_position_moves_only_its_own_partitions(log: Log, topic: str, group: str) -> None:
    log.seek(group, topic, 20)
    assert log.seek(group, topic, Position(topic, {1: 3})).offsets == {1: 3}
    assert {lag.partition: lag.committed for lag in log.lag(group)} == {0: 20, 1: 3, 2: 20, 3: 20}


def test_a_group_cannot_be_moved_past_the_end(log: Log, topic: str, group: str) -> None:
    with pytest.raises(OffsetLost, match="past the end"):
        log.seek(group, topic, 26)
    assert log.seek(group, topic, 25).offsets == dict.fromkeys(range(4), 25)


def test_a_deleted_group_begins_anew(log: Log, topic: str, group: str) -> None:
    with log.consumer(topic, group) as consumer:
        drain(consumer, 100)
        consumer.commit()
    log.delete_group(group)
    assert group not in log.groups()
    with log.consumer(topic, group) as consumer:
        assert len(drain(consumer, 100)) == 100


def test_a_group_with_members_is_not_deleted(log: Log, topic: str, group: str) -> None:
    with log.consumer(topic, group) as consumer:
        drain(consumer, 100)
        consumer.commit()
        with pytest.raises(UsageError, match="has living members"):
            log.delete_group(group)
    assert sum(lag.records for lag in log.lag(group)) == 0


def test_a_group_that_is_not_there_cannot_be_deleted(log: Log, group: str) -> None:
    with pytest.raises(UsageError, match="no group"):
        log.delete_group(group)


def test_a_group_never_skips_records_of_a_topic_that_was_made_again(log: Log, topic: str, group: str) -> None:
    read_all(log, topic, group, 100)
    log.delete_topic(topic)
    log.create_topic(topic, "n BIGINT", partitions=4)
    with log.producer(topic) as producer:
        producer.send_batch([{"n": n} for n in range(120)])
    with log.consumer(topic, group) as consumer:
        try:
            got = drain(consumer, 120)
        except TopicReplaced as told:  # a broker may have forgotten the group instead
            assert f"headwater seek {group} {topic} --to earliest" in str(told.hint)
            with pytest.raises(TopicReplaced):
                consumer.poll(1)
            got = []
    if not got:
        log.seek(group, topic, "earliest")
        got = read_all(log, topic, group, 120)
    assert sorted(row["n"] for row in got) == list(range(120))


def test_a_member_is_told_that_its_topic_was_made_again(log: Log, topic: str, group: str) -> None:
    with log.consumer(topic, group) as consumer:
        drain(consumer, 100)
        log.delete_topic(topic)
        log.create_topic(topic, "n BIGINT", partitions=4)
        time.sleep(1.1)  # for so long a declaration that was just read is taken for that of now
        with pytest.raises(TopicReplaced):
            consumer.commit()


def read_all(log: Log, topic: str, group: str, count: int) -> list[dict[str, object]]:
    with log.consumer(topic, group) as consumer:
        rows = drain(consumer, count)
        consumer.commit()
    return rows
