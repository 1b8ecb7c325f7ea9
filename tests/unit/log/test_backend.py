"""How a start and an end become offsets, whatever the backend."""

from __future__ import annotations

from typing import Any

import pytest

from headwater.errors import OffsetLost, TopicReplaced
from headwater.log.interface import Log
from headwater.log.position import Position


def numbers(log: Log, **how: Any) -> list[int]:
    return [n for batch in log.read("t", **how) for n in batch.column("n").to_pylist()]


def test_a_bare_offset_is_a_limit_at_the_end_and_a_place_that_must_be_there_at_the_start(log: Log) -> None:
    assert numbers(log, partition=0, end=1_000) == numbers(log, partition=0)
    assert numbers(log, start=4, end=5) == [8, 9]
    assert numbers(log, start=5) == []
    with pytest.raises(OffsetLost) as lost:
        log.read("t", start=6)
    assert lost.value.missed == 1


def test_a_position_stands_for_the_earliest_offset_where_it_names_no_partition(log: Log) -> None:
    topic = log.topic("t")
    assert log._resolve_offsets(topic, Position("t", {1: 3}, topic.id), [0, 1]) == {0: 0, 1: 3}
    assert log._end_offsets(topic, Position("t", {1: 3}, topic.id), [1]) == {1: 3}
    with pytest.raises(TopicReplaced):
        log._end_offsets(topic, Position("t", {1: 3}, "another"), [1])
