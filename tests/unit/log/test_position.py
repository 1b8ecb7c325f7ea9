"""Places in a topic: what they are called, which are refused, and which offsets they stand for."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater import topic
from headwater.errors import OffsetLost, TopicReplaced, UsageError
from headwater.log.position import (
    Extent,
    Position,
    Start,
    check_start,
    offsets_within,
    parse_start,
    seek_target,
    start_text,
)

offsets = st.dictionaries(st.integers(0, 3), st.integers(0, 20), max_size=4)
names = st.sampled_from(["orders", "a.b-c", "_x", "late.dead"])
positions = st.builds(Position, names, offsets, st.none() | st.sampled_from(["8b1f", "0"]))
extents = st.tuples(st.integers(0, 10), st.integers(0, 10)).map(lambda pair: Extent(pair[0], sum(pair)))
held = st.dictionaries(st.integers(0, 3), extents, min_size=1)
TOPIC = topic.create("t", "n INT", partitions=2)


@given(positions)
def test_a_position_survives_its_text(position: Position) -> None:
    assert Position.parse(str(position)) == position
    assert Position.parse(position.brief) == Position(position.topic, position.offsets)


@given(
    st.sampled_from(["earliest", "latest"])
    | st.integers(0, 2**62)
    | st.datetimes(timezones=st.just(UTC))
    | positions.filter(lambda position: position.offsets)
)
def test_a_start_survives_its_text(start: Start) -> None:
    assert parse_start(start_text(start)) == start


@given(offsets, offsets)
def test_a_position_has_passed_another_where_it_is_as_far_in_every_partition(
    mine: dict[int, int], other: dict[int, int]
) -> None:
    wanted = all(mine.get(number, 0) >= other.get(number, 0) for number in range(4))
    assert Position("t", mine).passed(Position("t", other)) == wanted


@given(held, offsets)
def test_a_position_stands_for_offsets_that_are_held_or_is_refused(
    held: dict[int, Extent], offsets: dict[int, int]
) -> None:
    wanted = {number: offsets.get(number, each.earliest) for number, each in held.items()}
    if all(held[number].earliest <= offset <= held[number].end for number, offset in wanted.items()):
        assert offsets_within(Position("t", offsets), "t", held) == wanted
    else:
        with pytest.raises(OffsetLost) as lost:
            offsets_within(Position("t", offsets), "t", held)
        assert lost.value.missed > 0


@given(held, st.integers(0, 25))
def test_a_bare_offset_stands_at_the_end_of_a_partition_that_is_shorter_than_another(
    held: dict[int, Extent], to: int
) -> None:
    retained = all(each.earliest <= to for each in held.values())
    if retained and to <= max(each.end for each in held.values()):
        assert offsets_within(to, "t", held) == {number: min(to, each.end) for number, each in held.items()}
    else:
        with pytest.raises(OffsetLost):
            offsets_within(to, "t", held)


@pytest.mark.parametrize("to", ["first", -1, True, 1.5, None, Position("other"), Position("t", {2: 0})])
def test_what_is_no_place_in_the_topic_is_refused(to: Start) -> None:
    with pytest.raises(UsageError):
        check_start(to, TOPIC)


def test_a_position_of_an_earlier_topic_of_the_name_is_refused_and_a_typed_one_is_not() -> None:
    check_start(Position("t", {1: 5}, TOPIC.id), TOPIC)
    check_start(Position("t", {1: 5}), TOPIC)
    with pytest.raises(TopicReplaced):
        check_start(Position("t", {1: 5}, "another"), TOPIC)


def test_a_seek_moves_the_partitions_that_a_position_names_and_all_for_any_other_place() -> None:
    resolved = Position("t", {0: 3, 1: 4}, "id")
    assert seek_target(Position("t", {1: 4}), resolved) == Position("t", {1: 4}, "id")
    assert seek_target(datetime(2026, 1, 1, tzinfo=UTC), resolved) == resolved


@pytest.mark.parametrize("text", ["t:0", "t:0=x", "t:0=1=2", "t:=", "t:0=1,1"])
def test_text_that_is_no_position_is_refused_with_what_one_looks_like(text: str) -> None:
    with pytest.raises(UsageError, match="invalid position"):
        Position.parse(text)
