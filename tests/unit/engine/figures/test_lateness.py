"""How late the rows of a topic come, beside what the engine makes of them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import headwater
from headwater import Log, durations
from headwater.durations import MICROSECOND
from headwater.engine.figures.lateness import profile
from headwater.engine.source.offset_plan import next_offsets
from headwater.engine.source.watermark import SourceProgress, Timing
from headwater.errors import UsageError
from headwater.log.embedded.partition import received_time
from soaking import examples

SECOND = 1_000_000
NOON = 1_767_268_800 * SECOND


class Shop:
    """A topic of which we say what is appended, by whom, and when the log received it."""

    def __init__(self, log: Log, partitions: int = 1):
        self.log, self.now, self.first = log, NOON, NOON
        log.create_topic(
            "orders", "id BIGINT, at TIMESTAMP", key="id", event_time="at", partitions=partitions
        )
        self._producers: dict[str, Any] = {}

    def append(self, producer: str, times: list[int | None], *, wait: float = 1) -> None:
        """Append rows of times in seconds after noon, some seconds after what was appended before."""
        self.now += int(wait * SECOND)
        if producer not in self._producers:
            self._producers[producer] = self.log.producer("orders", id=producer)
        rows = [
            {"id": number, "at": None if at is None else NOON + at * SECOND}
            for number, at in enumerate(times)
        ]
        self._producers[producer].send_batch(rows)
        self._producers[producer].flush()

    def close(self) -> None:
        for each in self._producers.values():
            each.close()


@pytest.fixture
def shop(monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    with headwater.open("memory:") as log:
        made = Shop(log)
        monkeypatch.setattr(durations, "now", lambda: made.now)
        monkeypatch.setattr(received_time, "files_clock", lambda _: made.now)
        yield made
        made.close()


def seconds(count: float) -> timedelta:
    return timedelta(seconds=count)


def test_rows_in_order_are_never_late(shop: Shop) -> None:
    for second in range(5):
        shop.append("till", [second, second + 1])
    found = profile(shop.log, "orders")
    assert (found.rows, found.late(seconds(0)), found.delays.largest) == (10, 0, seconds(0))
    assert found.advice() == seconds(0)


def test_a_row_is_as_late_as_it_is_behind_the_newest_of_its_producer(shop: Shop) -> None:
    shop.append("till", [100])
    shop.append("till", [97, 101, 60])
    shop.append("till", [30])
    found = profile(shop.log, "orders", judged=[seconds(71), seconds(70)])
    assert found.delays.largest == seconds(71)
    assert [found.late(seconds(each)) for each in (0, 1, 10, 60, 70, 71)] == [3, 3, 2, 1, 1, 0]


def test_a_row_is_never_late_because_of_one_appended_with_it(shop: Shop) -> None:
    shop.append("till", [100, 1])
    assert profile(shop.log, "orders").late(seconds(0)) == 0


def test_a_fast_producer_makes_no_slow_one_late(shop: Shop) -> None:
    for second in range(5):
        shop.append("slow", [second])
        shop.append("fast", [500 + second])
    assert profile(shop.log, "orders").late(seconds(0)) == 0


def test_one_who_was_idle_comes_back_late(shop: Shop) -> None:
    shop.append("slow", [0])
    shop.append("fast", [5])
    shop.append("fast", [50], wait=11)
    shop.append("slow", [20])
    found = profile(shop.log, "orders")
    assert (found.late(seconds(10)), found.delays.largest) == (1, seconds(30))
    patient = Timing(0, 60 * SECOND)
    assert profile(shop.log, "orders", timing=patient).late(seconds(0)) == 0


def test_when_all_were_silent_the_slow_one_comes_back_late(shop: Shop) -> None:
    shop.append("slow", [0])
    shop.append("fast", [50])
    shop.append("slow", [20], wait=30)
    assert profile(shop.log, "orders").delays.largest == seconds(30)


def test_when_all_were_silent_one_after_another_the_clock_is_at_the_one_that_came_furthest(
    shop: Shop,
) -> None:
    shop.append("slow", [0])
    shop.append("fast", [50])
    shop.append("slow", [1], wait=5)
    shop.append("slow", [None], wait=8)
    shop.append("slow", [20], wait=8)
    assert profile(shop.log, "orders").delays.largest == seconds(30)


def test_rows_ahead_of_their_receipt_make_nobody_late_and_are_told(shop: Shop) -> None:
    shop.append("till-1", [0, 7200, 3600])
    shop.append("till-1", [2])
    found = profile(shop.log, "orders")
    assert (found.late(seconds(0)), found.ahead) == (0, 2)
    assert found.furthest == ("till-1", seconds(7199))
    unguarded = profile(shop.log, "orders", timing=Timing(0, 10 * SECOND, None))
    assert (unguarded.delays.largest, unguarded.ahead, unguarded.furthest) == (seconds(7198), 0, None)


def test_rows_without_a_time_are_told_apart(shop: Shop) -> None:
    shop.append("till", [None, 5])
    shop.append("till", [None])
    found = profile(shop.log, "orders")
    assert (found.rows, found.timeless, found.late(seconds(0))) == (1, 2, 0)


def test_time_begins_anew_where_the_reading_starts(shop: Shop) -> None:
    shop.append("till", [100])
    shop.append("till", [50])
    shop.append("till", [49])
    assert profile(shop.log, "orders").delays.largest == seconds(51)
    assert profile(shop.log, "orders", start=1).delays.largest == seconds(1)


def test_progress_tells_of_every_row(shop: Shop) -> None:
    for second in range(5):
        shop.append("till", [second, None])
    done: list[int] = []
    profile(shop.log, "orders", step=done.append)
    assert sum(done) == 10


def test_the_advice_is_the_shortest_even_setting_that_keeps_enough(shop: Shop) -> None:
    shop.append("till", [100])
    for behind in range(1, 100):
        shop.append("till", [100 - behind], wait=0.01)
    found = profile(shop.log, "orders")
    assert found.advice(0.5) == timedelta(minutes=1)
    assert found.advice(1.0) == timedelta(minutes=2)


def test_an_empty_topic_has_a_profile_of_nothing(shop: Shop) -> None:
    found = profile(shop.log, "orders")
    assert (found.rows, found.delays.largest, found.advice()) == (0, seconds(0), seconds(0))


def test_a_topic_without_event_time_is_refused(shop: Shop) -> None:
    shop.log.create_topic("plain", "id BIGINT")
    with pytest.raises(UsageError, match='topic "plain" has no event time'):
        profile(shop.log, "plain")


APPENDS = st.lists(
    st.tuples(
        st.sampled_from("abc"),
        st.lists(st.one_of(st.none(), st.integers(-40, 60)), min_size=1, max_size=4),
        st.integers(1, 9),
    ),
    min_size=1,
    max_size=15,
)


@example(  # in one partition the producer is idle before it is in the other, and had come further there
    [
        *[("a", [None, 0], 1), ("a", [11], 1), ("a", [None, 0], 1)],
        *[("a", [None], 1), ("a", [None], 7), ("a", [0], 1)],
    ],
    8,
    None,
)
@example(  # one comes back from a short absence, in which no micro-batch was planned, with less than before
    [
        *[("b", [1], 1), ("a", [49], 1), ("b", [0], 8)],
        *[("a", [30], 3), ("b", [32], 1), ("b", [28], 1)],
    ],
    10,
    None,
)
@given(APPENDS, st.integers(1, 20), st.one_of(st.none(), st.integers(1, 30)))
@examples(40)
def test_the_engine_would_have_found_the_same_rows_late(
    appends: list[tuple[str, list[int | None], int]], idle: int, ahead: int | None
) -> None:
    timing = Timing(0, idle * SECOND, None if ahead is None else ahead * SECOND)
    with pytest.MonkeyPatch.context() as patch, headwater.open("memory:") as log:
        shop = Shop(log, partitions=2)
        patch.setattr(durations, "now", lambda: shop.now)
        patch.setattr(received_time, "files_clock", lambda _: shop.now)
        for producer, times, wait in appends:
            elapsed = (shop.now - NOON) // SECOND
            shop.append(producer, [None if at is None else elapsed + at for at in times], wait=wait)
        shop.close()
        judged = [seconds(each) for each in (0, 3, 17, 60)]
        found = profile(log, "orders", judged=judged, timing=timing)
        for lateness in judged:
            assert found.late(lateness) == late_by_the_engine(log, timing, lateness)
        times = [each for _, told, _ in appends for each in told]
        assert (found.rows, found.timeless) == (len(times) - times.count(None), times.count(None))


def late_by_the_engine(log: Log, timing: Timing, lateness: timedelta) -> int:
    """Let the engine keep up with the topic, append by append, and count the rows before its clock."""
    timing = Timing(lateness // MICROSECOND, timing.idle, timing.max_ahead)
    rows = {
        (row["_partition"], row["_offset"]): row["at"]
        for batch in log.read("orders", meta=True)
        for row in batch.to_pylist()
    }
    ends = log.resolve("orders", "latest").offsets
    ranges = [each for partition in ends for each in log.appended_ranges("orders", partition, 0)]
    at, late = SourceProgress(dict.fromkeys(ends, 0)), 0

    def look(ends: dict[int, int], now: int) -> SourceProgress:
        return next_offsets(
            at, lambda part, start: log.appended_ranges("orders", part, start), ends, None, now, timing
        )

    for each in sorted(ranges, key=lambda each: (each.received, each.partition)):
        at = look(dict(at.offsets), each.received)
        end = max(at.offsets[each.partition], each.end)  # a part of an earlier append may have come along
        after = look({**at.offsets, each.partition: end}, each.received)
        for partition, start in at.offsets.items():
            times = [rows[partition, offset] for offset in range(start, after.offsets[partition])]
            late += sum(time is not None and durations.micros(time) < at.watermark for time in times)
        at = after
        assert at.offsets[each.partition] >= each.end
    return late
