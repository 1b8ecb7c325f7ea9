"""A topic made again under its name is another one, and a place that a topic does not hold is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract_kit import Backend, drain, rows_of
from headwater import Log, Position
from headwater.errors import OffsetLost, TopicReplaced
from headwater.log.position import Extent, offsets_within

NAMES = st.from_regex(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,20}", fullmatch=True)
IDS = st.none() | st.from_regex(r"[A-Za-z0-9_-]{1,32}", fullmatch=True)


def filled(log: Log, name: str, count: int, partitions: int = 1) -> Position:
    log.create_topic(name, "n BIGINT", partitions=partitions)
    return appended(log, name, count)


def appended(log: Log, name: str, count: int) -> Position:
    with log.producer(name) as producer:
        producer.send_batch([{"n": n} for n in range(count)])
        return producer.flush()


def made_again(log: Log, name: str, count: int) -> Position:
    log.delete_topic(name)
    return filled(log, name, count)


def test_a_topic_keeps_its_identity_and_one_made_again_has_another(backend: Backend, name: str) -> None:
    made = backend.log.create_topic(name, "n BIGINT")
    assert made.id
    backend.log.alter_topic(name, schema="n BIGINT, m BIGINT", partitions=2)
    assert backend.again().topic(name).id == made.id
    assert {topic.id for topic in backend.log.topics() if topic.name == name} == {made.id}
    backend.log.delete_topic(name)
    assert backend.log.create_topic(name, "n BIGINT").id != made.id


def test_a_declaration_that_is_repeated_makes_no_other_topic(log: Log, name: str) -> None:
    assert log.create_topic(name, "n BIGINT") == log.create_topic(name, "n BIGINT")


def test_every_position_that_a_log_gives_carries_the_identity(log: Log, name: str) -> None:
    reached = filled(log, name, 3)
    id = log.topic(name).id
    with log.consumer(name, f"{name}-readers") as consumer:
        drain(consumer, 3)
        assert consumer.position() == reached == Position(name, {0: 3}, id)
    assert log.resolve(name, "earliest") == Position(name, {0: 0}, id)
    assert log.seek(f"{name}-others", name, 1) == Position(name, {0: 1}, id)


def test_a_position_of_the_topic_before_is_refused_wherever_it_is_taken(log: Log, name: str) -> None:
    old = filled(log, name, 3)
    made_again(log, name, 5)
    group = f"{name}-readers"
    for use in (
        lambda: log.resolve(name, old),
        lambda: log.read(name, start=old),
        lambda: log.read(name, end=old),
        lambda: log.read(name, start=old, follow=True),
        lambda: log.seek(group, name, old),
        lambda: log.consumer(name, group, start=old),
        lambda: log.appended_ranges(name, 0, old),
    ):
        with pytest.raises(TopicReplaced, match=f'topic "{name}" is not the one') as told:
            use()
        assert str(old.id) in str(told.value.detail)
        assert "earliest" in str(told.value.hint)
    assert group not in log.groups()
    typed = replace(old, id=None)
    assert [row["n"] for row in rows_of(log, name, start=typed)] == [3, 4]


def test_a_member_cannot_commit_a_position_of_the_topic_before(log: Log, name: str) -> None:
    old = filled(log, name, 3)
    made_again(log, name, 5)
    with log.consumer(name, f"{name}-readers") as consumer:
        drain(consumer, 5)
        with pytest.raises(TopicReplaced, match="this position"):
            consumer.commit(old)
        consumer.commit()


def test_a_reader_that_was_begun_does_not_go_over_to_the_topic_made_again(log: Log, name: str) -> None:
    filled(log, name, 3)
    begun = log.read(name)
    made_again(log, name, 5)
    with pytest.raises(TopicReplaced):
        list(begun)


def test_appended_ranges_that_were_asked_for_are_not_those_of_the_topic_made_again(
    log: Log, name: str
) -> None:
    reached = filled(log, name, 3)
    asked = log.appended_ranges(name, 0, replace(reached, offsets={0: 0}))
    made_again(log, name, 5)
    with pytest.raises(TopicReplaced):
        list(asked)


def test_a_producer_does_not_go_over_to_the_topic_made_again(log: Log, name: str) -> None:
    log.create_topic(name, "n BIGINT")
    producer = log.producer(name)
    log.delete_topic(name)
    log.create_topic(name, "n BIGINT")
    with pytest.raises(TopicReplaced):  # a batch may be refused at once or at the flush
        producer.send_batch([{"n": 1}])
        producer.flush()
    with pytest.raises(TopicReplaced):
        producer.close()
    assert rows_of(log, name) == []


def test_a_place_past_the_end_is_refused_and_the_end_is_not(log: Log, name: str) -> None:
    reached = filled(log, name, 3)
    group = f"{name}-readers"
    with pytest.raises(OffsetLost, match="past the end"):
        log.read(name, end=Position(name, {0: 10}))
    for place in (replace(reached, offsets={0: 10}), Position(name, {0: 10}), 10):
        for use in (
            lambda place=place: log.resolve(name, place),
            lambda place=place: log.read(name, start=place),
            lambda place=place: log.read(name, start=place, follow=True),
            lambda place=place: log.seek(group, name, place),
        ):
            with pytest.raises(OffsetLost, match=r"offset 10 .* is past the end") as told:
                use()
            assert told.value.missed == 7
            assert "7 records were lost" in str(told.value.detail)
    assert rows_of(log, name, start=reached) == []
    assert rows_of(log, name, start=3) == []
    assert [row["n"] for row in rows_of(log, name, start=1, end=10)] == [1, 2]


def test_a_group_does_not_begin_past_the_end(log: Log, name: str) -> None:
    filled(log, name, 3)
    group = f"{name}-readers"
    with (
        log.consumer(name, group, start=Position(name, {0: 10})) as consumer,
        pytest.raises(OffsetLost, match="past the end"),
    ):
        drain(consumer, 1, timeout=20)
    with log.consumer(name, group) as consumer:
        assert len(drain(consumer, 3)) == 3


def test_an_offset_is_meant_for_every_partition_and_ends_with_a_shorter_one(log: Log, name: str) -> None:
    log.create_topic(name, "n BIGINT", key="n", partitions=2)
    with log.producer(name) as producer:
        producer.send_batch([{"n": 1}] * 5)
    ends = log.resolve(name, "latest").offsets
    longer, shorter = sorted(ends, key=lambda number: -ends[number])
    assert log.resolve(name, 3).offsets == {longer: 3, shorter: 0}
    with pytest.raises(OffsetLost):
        log.read(name, partition=shorter, start=3)


@given(NAMES, st.dictionaries(st.integers(0, 1023), st.integers(0, 1 << 62)), IDS)
def test_the_text_of_a_position_is_read_back_as_it_was(
    topic: str, offsets: dict[int, int], id: str | None
) -> None:
    position = Position(topic, offsets, id)
    assert Position.parse(str(position)) == position
    assert Position.parse(position.brief) == Position(topic, offsets)


@given(st.integers(0, 20), st.integers(0, 20), st.integers(0, 30))
def test_only_what_a_partition_holds_and_its_end_are_places(earliest: int, length: int, offset: int) -> None:
    extent = Extent(earliest, earliest + length)
    place = Position("t", {0: offset})
    if extent.earliest <= offset <= extent.end:
        assert offsets_within(place, "t", {0: extent}) == {0: offset}
        return
    with pytest.raises(OffsetLost) as told:
        offsets_within(place, "t", {0: extent})
    assert told.value.missed == max(extent.earliest - offset, offset - extent.end)
