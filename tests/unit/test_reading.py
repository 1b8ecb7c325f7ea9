"""How far to read next, and what time it is then."""

from __future__ import annotations

import json
from collections.abc import Iterator

from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.engine.reading import NEVER, Offsets, Timing, advance
from headwater.log.stretch import Stretch

SECOND = 1_000_000


class Feed:
    """A topic made of stretches."""

    def __init__(self, partitions: int = 1):
        self.parts: dict[int, list[Stretch]] = {number: [] for number in range(partitions)}

    def append(self, producer: str, newest: int | None, *, rows: int = 1, at: int = 0, part: int = 0) -> None:
        base = self.end(part)
        self.parts[part].append(Stretch(part, base, base + rows, producer, at, newest))

    def mark(self, producer: str, time: int, *, at: int = 0, part: int = 0) -> None:
        base = self.end(part)
        self.parts[part].append(Stretch(part, base, base, producer, at, time, True))

    def end(self, part: int) -> int:
        return self.parts[part][-1].end if self.parts[part] else 0

    def ends(self) -> dict[int, int]:
        return {part: self.end(part) for part in self.parts}

    def stretches(self, part: int, start: int) -> Iterator[Stretch]:
        for each in self.parts[part]:
            if each.mark and each.base >= start:
                yield each
            elif each.end > start:
                yield Stretch(
                    part, max(start, each.base), each.end, each.producer, each.received, each.newest
                )

    def step(
        self, start: Offsets, *, limit: int | None = None, now: int = 0, lateness: int | None = 0
    ) -> Offsets:
        return advance(start, self.stretches, self.ends(), limit, now, Timing(lateness, 10 * SECOND))


def begin(partitions: int = 1) -> Offsets:
    return Offsets(dict.fromkeys(range(partitions), 0))


def test_the_clock_is_that_of_the_slowest_producer() -> None:
    feed = Feed()
    feed.append("fast", 100 * SECOND)
    feed.append("slow", 10 * SECOND)
    assert feed.step(begin()).clock == 10 * SECOND


def test_lateness_holds_the_clock_back() -> None:
    feed = Feed()
    feed.append("a", 100 * SECOND)
    assert feed.step(begin(), lateness=30 * SECOND).clock == 70 * SECOND


def test_a_producer_has_a_claim_in_each_partition() -> None:
    feed = Feed(2)
    feed.append("a", 100 * SECOND, part=0)
    feed.append("a", 40 * SECOND, part=1)
    assert feed.step(begin(2)).clock == 40 * SECOND


def test_a_silent_producer_is_set_aside_and_may_come_back() -> None:
    feed = Feed()
    feed.append("a", 10 * SECOND, at=0)
    feed.append("b", 20 * SECOND, at=15 * SECOND)
    first = feed.step(begin(), now=15 * SECOND)
    assert first.clock == 20 * SECOND
    assert {producer for _, producer in first.claims} == {"b"}
    feed.append("a", 12 * SECOND, at=16 * SECOND)
    again = feed.step(first, now=16 * SECOND)
    assert again.clock == 20 * SECOND
    assert {producer for _, producer in again.claims} == {"a", "b"}


def test_when_all_are_silent_the_clock_goes_to_the_newest_claim() -> None:
    feed = Feed()
    feed.append("a", 10 * SECOND)
    feed.append("b", 20 * SECOND)
    first = feed.step(begin(), now=0)
    assert first.clock == 10 * SECOND
    assert feed.step(first, now=60 * SECOND).clock == 20 * SECOND


def test_while_catching_up_silence_is_measured_by_the_times_of_receipt() -> None:
    feed = Feed()
    for number in range(10):
        feed.append("a", number * SECOND, at=number * SECOND)
        feed.append("b", (number + 50) * SECOND, at=number * SECOND)
    assert feed.step(begin(), limit=8, now=10**15).clock == 3 * SECOND


def test_a_mark_needs_no_lateness() -> None:
    feed = Feed()
    feed.append("a", 100 * SECOND)
    feed.mark("a", 99 * SECOND)
    assert feed.step(begin(), lateness=30 * SECOND).clock == 99 * SECOND


def test_where_only_marks_tell_the_time_records_do_not() -> None:
    feed = Feed()
    feed.append("a", 100 * SECOND)
    first = feed.step(begin(), lateness=None)
    assert (first.offsets, first.clock) == ({0: 1}, NEVER)
    feed.mark("a", 50 * SECOND)
    assert feed.step(first, lateness=None).clock == 50 * SECOND


def test_a_claim_counts_only_when_its_records_are_read() -> None:
    feed = Feed()
    feed.append("a", 10 * SECOND, rows=5)
    feed.append("a", 100 * SECOND, rows=5)
    first = feed.step(begin(), limit=7)
    assert (first.offsets, first.clock) == ({0: 7}, 10 * SECOND)
    assert feed.step(first, limit=7).clock == 100 * SECOND


def test_partitions_keep_pace_by_the_time_of_receipt() -> None:
    feed = Feed(2)
    for number in range(10):
        feed.append("a", None, at=number, part=number % 2)
    assert feed.step(begin(2), limit=4).offsets == {0: 2, 1: 2}


def test_nothing_new_returns_the_same_offsets() -> None:
    feed = Feed()
    feed.append("a", 10 * SECOND)
    first = feed.step(begin())
    assert feed.step(first) is first


def test_a_new_partition_is_read_from_its_beginning() -> None:
    feed = Feed(1)
    feed.append("a", 10 * SECOND)
    first = feed.step(begin())
    feed.parts[1] = []
    feed.append("b", 5 * SECOND, part=1)
    assert feed.step(first).offsets == {0: 1, 1: 1}


APPENDS = st.lists(
    st.tuples(
        st.integers(0, 2),
        st.sampled_from("abc"),
        st.integers(0, 50),
        st.integers(1, 5),
        st.booleans(),
    ),
    max_size=30,
)


@given(APPENDS, st.lists(st.tuples(st.integers(1, 20), st.integers(0, 3)), min_size=1, max_size=15))
@settings(max_examples=200)
def test_reading_in_any_steps_reads_everything_once_and_never_turns_time_back(
    appends: list[tuple[int, str, int, int, bool]], steps: list[tuple[int, int]]
) -> None:
    feed = Feed(3)
    for number, (part, producer, time, rows, mark) in enumerate(appends):
        if mark:
            feed.mark(producer, time, at=number, part=part)
        else:
            feed.append(producer, time, rows=rows, at=number, part=part)
    at, now = begin(3), len(appends)
    for limit, wait in [*steps, (10**6, 0)]:
        now += wait
        after = feed.step(at, limit=limit, now=now)
        assert after.clock >= at.clock
        assert sum(after.offsets.values()) - sum(at.offsets.values()) <= limit
        assert all(after.offsets[part] >= at.offsets[part] for part in at.offsets)
        assert Offsets.from_json(json.loads(json.dumps(after.to_json()))) == after
        at = after
    assert at.offsets == feed.ends()
    claims: dict[tuple[int, str], int] = {}
    for part, stretches in feed.parts.items():
        for each in stretches:
            assert each.newest is not None
            claims[part, each.producer] = max(claims.get((part, each.producer), NEVER), each.newest)
    slowest = min(claims.values(), default=NEVER)
    assert feed.step(begin(3), now=now).clock == slowest
    # A producer that is met only after the clock has passed its events is late.
    assert slowest <= at.clock <= max(claims.values(), default=NEVER)
