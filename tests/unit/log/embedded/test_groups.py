"""Members of groups on the embedded log that move, hang, fork and die."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import headwater
from headwater import Position
from headwater.errors import Fenced, OffsetLost, TopicReplaced, UsageError
from headwater.log.embedded import EmbeddedLog, groups


@pytest.fixture
def log(tmp_path: Path) -> Iterator[EmbeddedLog]:
    with EmbeddedLog(tmp_path / "log") as log:
        log.create_topic("t", "n INT", partitions=2)
        with log.producer("t") as producer:
            producer.send_batch([{"n": n} for n in range(20)])
        yield log


def test_a_living_member_starts_again_where_a_seek_moved_its_group(log: EmbeddedLog) -> None:
    with log.consumer("t", "g") as consumer:
        seen = sum(len(consumer.poll(5) or ()) for _ in range(2))
        assert seen == 20
        consumer.commit()
        log.seek("g", "t", "earliest")
        again = sum(len(consumer.poll(5) or ()) for _ in range(2))
        assert again == 20
        consumer.commit()
    assert [lag.records for lag in log.lag("g")] == [0, 0]


def test_what_was_delivered_before_a_seek_cannot_be_committed_after_it(log: EmbeddedLog) -> None:
    with log.consumer("t", "g") as consumer:
        consumer.poll(5)
        consumer.poll(5)
        log.seek("g", "t", 3)
        with pytest.raises(Fenced):
            consumer.commit()
    assert [lag.committed for lag in log.lag("g")] == [3, 3]


def test_a_partition_that_was_lost_and_regained_is_still_lost(
    log: EmbeddedLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    with log.consumer("t", "g") as hanging:
        hanging.poll(5)
        hanging.poll(5)
        monkeypatch.setattr(groups, "MAX_POLL_SECONDS", 0.0)
        with log.consumer("t", "g") as other:
            assert other.assignment() == (0, 1)
            other.poll(5)
            other.commit()
        monkeypatch.undo()
        hanging.assignment()
        with pytest.raises(Fenced):
            hanging.commit()


def test_a_member_that_was_taken_for_dead_comes_back(
    log: EmbeddedLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    with log.consumer("t", "g") as hanging, log.consumer("t", "g") as other:
        hanging.poll(0.1)
        monkeypatch.setattr(groups, "MAX_POLL_SECONDS", 0.0)
        other.poll(0.1)
        monkeypatch.undo()
        for _ in range(50):
            hanging.poll(0.05)
            other.poll(0.05)
            if len(hanging.assignment()) == len(other.assignment()) == 1:
                break
        assert sorted(hanging.assignment() + other.assignment()) == [0, 1]


def test_a_start_is_kept_when_the_first_member_dies_before_it_commits(log: EmbeddedLog) -> None:
    first = log.consumer("t", "g", start="latest")
    assert first.poll(0.1) is None
    with log.producer("t") as producer:
        producer.send_batch([{"n": n} for n in range(5)])
    assert first.poll(5) is not None
    first.close()
    with log.consumer("t", "g", start="latest") as second:
        found = sum(len(second.poll(1) or ()) for _ in range(3))
    assert found == 5


def test_a_partition_that_is_added_is_read_from_its_start(log: EmbeddedLog) -> None:
    with log.consumer("t", "g", start="latest") as consumer:
        assert consumer.poll(0.1) is None
        log.alter_topic("t", partitions=3)
        with log.producer("t") as producer:
            producer.send_batch([{"n": n} for n in range(6)])
        found = 0
        deadline = time.monotonic() + 120
        while found < 6 and time.monotonic() < deadline:
            found += len(consumer.poll(0.5) or ())
    assert found == 6


def test_only_what_was_delivered_of_this_topic_can_be_committed(log: EmbeddedLog) -> None:
    with log.consumer("t", "g") as consumer:
        consumer.poll(5)
        consumer.poll(5)
        with pytest.raises(UsageError, match='of topic "other"'):
            consumer.commit(Position("other", {0: 1}))
        with pytest.raises(UsageError, match="has not been delivered"):
            consumer.commit(Position("t", {0: 11}))
        consumer.commit(Position("t", {0: 4}))
        consumer.commit()
    assert [lag.committed for lag in log.lag("g")] == [10, 10]


def test_a_forked_child_cannot_use_what_its_parent_opened(log: EmbeddedLog) -> None:
    producer, consumer = log.producer("t"), log.consumer("t", "g")
    consumer.poll(0.1)
    child = os.fork()
    if child == 0:
        refused = 0
        for attempt in (lambda: producer.send_batch([{"n": 1}]), producer.flush, consumer.poll, log.groups):
            try:
                attempt()
            except UsageError:
                refused += 1
        os._exit(refused)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 4
    producer.close()
    consumer.close()


def test_a_child_that_lives_on_does_not_hold_up_the_takeover(log: EmbeddedLog) -> None:
    parent = os.fork()
    if parent == 0:
        consumer = EmbeddedLog(log.root).consumer("t", "g")
        consumer.poll(0.1)
        if os.fork() == 0:
            time.sleep(20)
            os._exit(0)
        (log.root / "ready").touch()
        time.sleep(20)
        os._exit(0)
    while not (log.root / "ready").exists():
        time.sleep(0.01)
    os.kill(parent, 9)
    os.waitpid(parent, 0)
    with log.consumer("t", "g") as heir:
        heir.poll(0.1)
        assert heir.assignment() == (0, 1)


def test_a_private_log_outlives_a_forked_child() -> None:
    import headwater

    with headwater.open("memory:") as log:
        log.create_topic("t", "n INT")
        child = os.fork()
        if child == 0:
            log.__del__()  # type: ignore[attr-defined]
            os._exit(0)
        os.waitpid(child, 0)
        assert log.topic("t").name == "t"


@pytest.mark.parametrize("by_hand", [False, True])
def test_a_group_of_a_topic_that_was_made_again_is_refused_until_it_is_moved(
    log: EmbeddedLog, by_hand: bool
) -> None:
    with log.consumer("t", "g") as consumer:
        drain(consumer)
        consumer.commit()
    if by_hand:
        shutil.rmtree(log.root / "topics" / "t")
    else:
        log.delete_topic("t")
    assert log.lag("g") == []
    log.create_topic("t", "n BIGINT")
    with log.producer("t") as producer:
        producer.send_batch([{"n": n} for n in range(30)])
    assert [lag.records for lag in log.lag("g")] == [30]
    with log.consumer("t", "g", start="latest") as consumer:
        for _ in range(2):
            with pytest.raises(TopicReplaced, match='what group "g" has committed'):
                consumer.poll(1)
    log.seek("g", "t", 10)
    with log.consumer("t", "g") as consumer:
        assert len(drain(consumer)) == 20


def test_a_group_whose_topic_has_lost_its_end_is_refused(log: EmbeddedLog) -> None:
    log.create_topic("short", "n BIGINT")
    log._storage.state.set_committed("g", log.topic("short"), {0: 7})
    with log.consumer("short", "g") as consumer:
        for _ in range(2):
            with pytest.raises(OffsetLost, match="past the end"):
                consumer.poll(1)


def test_a_deleted_group_is_not_told_of_topics_that_it_had_read(log: EmbeddedLog) -> None:
    with log.consumer("t", "g") as consumer:
        drain(consumer)
        consumer.commit()
    log.delete_topic("t")
    log.delete_group("g")
    log.create_topic("t", "n BIGINT")
    with log.consumer("t", "g") as consumer:
        assert consumer.poll(0.1) is None


def drain(consumer: headwater.Consumer) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    while (batch := consumer.poll(0.2)) is not None:
        rows += batch.to_pylist()
    return rows
