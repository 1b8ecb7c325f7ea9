"""By how many partitions micro-batches were placed, noted beside their topic. Without Spark."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from headwater.engine.source.placements import Placements
from headwater.errors import HeadwaterError
from headwater.log import Log
from headwater.log.open import open as open_log


@pytest.fixture
def log() -> Iterator[Log]:
    with open_log("memory:") as log:
        log.create_topic("copies", "id BIGINT", partitions=2)
        yield log


def notes(log: Log) -> int:
    return log.resolve("copies.placements", "latest").offsets[0]


def test_a_placement_holds_until_there_is_one_by_more_partitions(log: Log) -> None:
    placements = Placements(log, "copies", "q")
    for number, partitions in ((3, 2), (4, 2), (7, 5), (8, 5)):
        placements.note(number, partitions)
    assert [Placements(log, "copies", "q").partitions_of(number) for number in (3, 6, 7, 9)] == [2, 2, 5, 5]
    assert notes(log) == 2  # not one for each micro-batch


def test_a_late_note_of_a_driver_that_was_replaced_changes_nothing(log: Log) -> None:
    Placements(log, "copies", "q").note(3, 5)
    Placements(log, "copies", "q").note(3, 2)
    assert Placements(log, "copies", "q").partitions_of(3) == 5


def test_queries_and_topics_of_one_name_are_kept_apart(log: Log) -> None:
    Placements(log, "copies", "q").note(0, 2)
    with pytest.raises(HeadwaterError, match="not known how micro-batch 0 was placed"):
        Placements(log, "copies", "another").partitions_of(0)
    log.delete_topic("copies")
    log.create_topic("copies", "id BIGINT", partitions=2)
    with pytest.raises(HeadwaterError, match="not known how micro-batch 0 was placed"):
        Placements(log, "copies", "q").partitions_of(0)
