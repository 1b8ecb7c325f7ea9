"""What lies between two offsets, told without reading it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

import headwater
from headwater.log.appended_range import AppendedRange
from headwater.log.interface import Log

EARLY = datetime(2020, 1, 1, tzinfo=UTC)


@pytest.fixture
def log() -> Iterator[Log]:
    with headwater.open("memory:") as log:
        log.create_topic("t", "n INT, at TIMESTAMP", event_time="at")
        yield log


def test_an_appended_range_began_when_its_first_record_was_received_where_that_was_earlier() -> None:
    assert AppendedRange(0, 0, 5, "p", received=9, newest=None).began == 9
    assert AppendedRange(0, 0, 5, "p", received=9, newest=None, first=4).began == 4
    assert AppendedRange(0, 0, 5, "p", received=9, newest=None, first=0).began == 0


@pytest.mark.parametrize("start", range(7))
def test_appended_ranges_cover_each_offset_up_to_the_end_once_and_marks_lie_between_them(
    log: Log, start: int
) -> None:
    with log.producer("t", id="p") as producer:
        for count in (3, 2, 1):
            producer.send_batch([{"n": n, "at": EARLY} for n in range(count)])
            producer.flush()
            producer.mark(EARLY)
    every = list(log.appended_ranges("t", 0, start))
    offsets = [offset for each in every if not each.mark for offset in range(each.base, each.end)]
    assert offsets == list(range(start, 6))
    assert [each.base for each in every if each.mark] == [end for end in (3, 5, 6) if end >= start]
    assert all(each.base == each.end for each in every if each.mark)


def test_an_appended_range_has_its_producer_and_the_newest_event_time_in_it(log: Log) -> None:
    later = datetime(2021, 1, 1, tzinfo=UTC)
    with log.producer("t", id="p") as producer:
        producer.send_batch([{"n": 1, "at": EARLY}, {"n": 2, "at": later}, {"n": 3, "at": None}])
    [found] = log.appended_ranges("t", 0, 0)
    assert (found.producer, found.newest) == ("p", int(later.timestamp()) * 1_000_000)
