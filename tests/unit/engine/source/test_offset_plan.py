"""How far to read next, and what time it is then."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from headwater.engine.source.offset_plan import next_offsets
from headwater.engine.source.watermark import NEVER, Claim, SourceProgress, Timing
from headwater.log.appended_range import AppendedRange
from soaking import examples

SECOND = 1_000_000


class Feed:
    """A topic made of appended ranges."""

    def __init__(self, partitions: int = 1):
        self.parts: dict[int, list[AppendedRange]] = {number: [] for number in range(partitions)}

    def append(
        self,
        producer: str,
        newest: int | None,
        *,
        rows: int = 1,
        at: int = 0,
        part: int = 0,
        first: int | None = None,
    ) -> None:
        base = self.end(part)
        self.parts[part].append(AppendedRange(part, base, base + rows, producer, at, newest, first=first))

    def mark(self, producer: str, time: int, *, at: int = 0, part: int = 0) -> None:
        base = self.end(part)
        self.parts[part].append(AppendedRange(part, base, base, producer, at, time, True))

    def end(self, part: int) -> int:
        return self.parts[part][-1].end if self.parts[part] else 0

    def ends(self) -> dict[int, int]:
        return {part: self.end(part) for part in self.parts}

    def appended_ranges(self, part: int, start: int) -> Iterator[AppendedRange]:
        for each in self.parts[part]:
            if each.mark and each.base >= start:
                yield each
            elif each.end > start:
                yield replace(each, base=max(start, each.base))

    def step(
        self,
        start: SourceProgress,
        *,
        limit: int | None = None,
        now: int = 0,
        lateness: int | None = 0,
        ahead: int | None = None,
        silence: int | None = None,
    ) -> SourceProgress:
        timing = Timing(lateness, 10 * SECOND, ahead, silence)
        return next_offsets(start, self.appended_ranges, self.ends(), limit, now, timing)


def begin(partitions: int = 1) -> SourceProgress:
    return SourceProgress(dict.fromkeys(range(partitions), 0))


def test_the_clock_is_that_of_the_slowest_producer() -> None:
    feed = Feed()
    feed.append("fast", 100 * SECOND)
    feed.append("slow", 10 * SECOND)
    assert feed.step(begin()).watermark == 10 * SECOND


def test_lateness_holds_the_clock_back() -> None:
    feed = Feed()
    feed.append("a", 100 * SECOND)
    assert feed.step(begin(), lateness=30 * SECOND).watermark == 70 * SECOND


def test_a_producer_has_a_claim_in_each_partition() -> None:
    feed = Feed(2)
    feed.append("a", 100 * SECOND, part=0)
    feed.append("a", 40 * SECOND, part=1)
    assert feed.step(begin(2)).watermark == 40 * SECOND


def test_a_silent_producer_is_set_aside_and_may_come_back() -> None:
    feed = Feed()
    feed.append("a", 10 * SECOND, at=0)
    feed.append("b", 20 * SECOND, at=15 * SECOND)
    first = feed.step(begin(), now=15 * SECOND)
    assert first.watermark == 20 * SECOND
    assert {producer for _, producer in first.claims} == {"b"}
    feed.append("a", 12 * SECOND, at=16 * SECOND)
    again = feed.step(first, now=16 * SECOND)
    assert again.watermark == 20 * SECOND
    assert {producer for _, producer in again.claims} == {"a", "b"}


def test_a_producer_that_was_received_in_the_future_is_set_aside_as_any_other() -> None:
    feed, day = Feed(), 86_400 * SECOND
    feed.append("ahead", 10 * SECOND, at=100 * SECOND + day)  # the log's clock was wrong then
    first = feed.step(begin(), now=100 * SECOND)
    feed.append("a", 20 * SECOND, at=105 * SECOND)
    second = feed.step(first, now=105 * SECOND)
    assert second.watermark == 10 * SECOND
    feed.append("a", 30 * SECOND, at=111 * SECOND)
    assert feed.step(second, now=111 * SECOND).watermark == 30 * SECOND


def test_what_is_remembered_as_received_in_the_future_is_forgotten_in_time() -> None:
    claims = {(0, "ahead"): Claim(10 * SECOND, 900 * SECOND), (0, "a"): Claim(20 * SECOND, 100 * SECOND)}
    start = SourceProgress({0: 2}, 10 * SECOND, claims, heard=900 * SECOND, furthest=20 * SECOND)
    feed = Feed()
    feed.append("a", 20 * SECOND, rows=2)
    unknown = feed.step(start, now=NEVER, silence=30 * SECOND)
    assert unknown == start
    told = feed.step(start, now=101 * SECOND, silence=30 * SECOND)
    assert (told.watermark, told.heard, told.claims[0, "ahead"].received) == (
        10 * SECOND,
        101 * SECOND,
        101 * SECOND,
    )
    assert feed.step(told, now=102 * SECOND, silence=30 * SECOND) is told  # once is enough
    after = feed.step(told, now=132 * SECOND, silence=30 * SECOND)
    assert (after.watermark, after.silent) == (20 * SECOND, True)


def test_when_all_are_silent_the_clock_goes_to_the_newest_claim() -> None:
    feed = Feed()
    feed.append("a", 10 * SECOND)
    feed.append("b", 20 * SECOND)
    first = feed.step(begin(), now=0)
    assert first.watermark == 10 * SECOND
    assert feed.step(first, now=60 * SECOND).watermark == 20 * SECOND


def test_when_all_are_silent_it_does_not_matter_who_was_set_aside_first() -> None:
    feed = Feed()
    feed.append("fast", 50 * SECOND, at=0)
    feed.append("slow", 1 * SECOND, at=5 * SECOND)
    first = feed.step(begin(), now=5 * SECOND)
    feed.append("slow", 2 * SECOND, at=12 * SECOND)
    between = feed.step(first, now=12 * SECOND)
    assert {producer for _, producer in between.claims} == {"slow"}
    for before in (begin(), first, between):
        assert feed.step(before, now=60 * SECOND).watermark == 50 * SECOND


def test_one_who_was_idle_claims_anew_whether_or_not_it_was_set_aside() -> None:
    feed = Feed()
    feed.append("slow", 1 * SECOND, at=0)
    feed.append("fast", 50 * SECOND, at=0)
    first = feed.step(begin(), now=0)
    feed.append("slow", 2 * SECOND, at=11 * SECOND)
    between = feed.step(first, now=11 * SECOND)
    assert {producer for _, producer in between.claims} == {"slow"}
    feed.append("fast", 40 * SECOND, at=12 * SECOND)
    feed.append("slow", 45 * SECOND, at=13 * SECOND)
    for before in (begin(), first, between):
        after = feed.step(before, now=13 * SECOND)
        assert (after.watermark, after.furthest) == (40 * SECOND, 50 * SECOND)


def test_a_source_is_silent_when_nothing_was_received_for_so_long_and_all_is_read() -> None:
    feed, rest = Feed(), 30 * SECOND
    feed.append("a", 10 * SECOND, at=1 * SECOND)
    feed.append("b", 20 * SECOND, at=2 * SECOND, rows=9)
    first = feed.step(begin(), now=32 * SECOND, silence=rest)
    assert (first.silent, first.heard) == (False, 2 * SECOND)
    second = feed.step(first, now=33 * SECOND, silence=rest)
    assert second.silent
    assert feed.step(second, now=90 * SECOND, silence=rest) is second
    feed.append("a", 95 * SECOND, at=95 * SECOND)
    assert not feed.step(second, now=96 * SECOND, silence=rest).silent
    assert not feed.step(begin(), now=90 * SECOND, limit=3, silence=rest).silent, "there is more to read"
    assert not feed.step(begin(), now=990 * SECOND).silent, "nobody has said how long it may be silent"


def test_a_source_that_has_never_told_a_time_is_waited_for() -> None:
    feed, start = Feed(), begin()
    assert feed.step(start, now=111 * SECOND, silence=SECOND) is start
    feed.append("a", None)
    assert not feed.step(start, now=111 * SECOND, silence=SECOND).silent


def test_while_catching_up_silence_is_measured_by_the_times_of_receipt() -> None:
    feed = Feed()
    for number in range(10):
        feed.append("a", number * SECOND, at=number * SECOND)
        feed.append("b", (number + 50) * SECOND, at=number * SECOND)
    assert feed.step(begin(), limit=8, now=10**15).watermark == 3 * SECOND


def test_a_mark_needs_no_lateness() -> None:
    feed = Feed()
    feed.append("a", 100 * SECOND)
    feed.mark("a", 99 * SECOND)
    assert feed.step(begin(), lateness=30 * SECOND).watermark == 99 * SECOND


def test_where_only_marks_tell_the_time_records_do_not() -> None:
    feed = Feed()
    feed.append("a", 100 * SECOND)
    first = feed.step(begin(), lateness=None)
    assert (first.offsets, first.watermark) == ({0: 1}, NEVER)
    feed.mark("a", 50 * SECOND)
    assert feed.step(first, lateness=None).watermark == 50 * SECOND


def test_a_claim_counts_only_when_its_records_are_read() -> None:
    feed = Feed()
    feed.append("a", 10 * SECOND, rows=5)
    feed.append("a", 100 * SECOND, rows=5)
    first = feed.step(begin(), limit=7)
    assert (first.offsets, first.watermark) == ({0: 7}, 10 * SECOND)
    assert feed.step(first, limit=7).watermark == 100 * SECOND


def test_an_end_within_the_first_append_of_a_producer_does_not_cut_it() -> None:
    feed, timing = Feed(2), Timing(0, 10 * SECOND)
    feed.append("x", 10 * SECOND, rows=5, at=0)
    feed.append("z", 100 * SECOND, at=1 * SECOND, part=1)
    feed.append("x", 50 * SECOND, rows=5, at=5 * SECOND)
    knowing = feed.step(begin(2), limit=8)
    assert (knowing.offsets, knowing.watermark) == ({0: 7, 1: 1}, 10 * SECOND)
    other = SourceProgress({0: 5, 1: 0}, 10 * SECOND)  # it began behind the first append of x
    there = next_offsets(other, feed.appended_ranges, knowing.offsets, None, NEVER, timing)
    assert (there.offsets, there.watermark) == ({0: 10, 1: 1}, 50 * SECOND)
    again = next_offsets(knowing, feed.appended_ranges, there.offsets, None, NEVER, timing)
    assert (again.offsets, again.watermark) == (there.offsets, there.watermark)


def test_a_limit_does_not_cut_an_append_of_a_producer_that_has_been_silent_for_long() -> None:
    feed = Feed(2)
    feed.append("x", 10 * SECOND, rows=5, at=0)
    feed.append("z", 100 * SECOND, at=19 * SECOND, part=1)
    feed.append("x", 50 * SECOND, rows=5, at=20 * SECOND)
    reached = feed.step(begin(2), limit=8)
    assert (reached.offsets, reached.watermark) == ({0: 10, 1: 1}, 50 * SECOND)


def test_the_first_append_of_a_producer_is_taken_whole_in_all_partitions() -> None:
    feed = Feed(3)
    feed.append("a", 25 * SECOND, rows=4, part=0)
    feed.append("a", 0, rows=2, part=1)  # the same send, to another partition
    feed.append("b", 5 * SECOND, rows=2, part=2)
    first = feed.step(begin(3), limit=2)
    assert (first.offsets, first.watermark) == ({0: 4, 1: 2, 2: 0}, 0)
    feed.append("a", 30 * SECOND, rows=4, part=0, at=1)
    assert feed.step(first, limit=3).offsets == {0: 5, 1: 2, 2: 2}  # whose time is known is cut again


def test_nothing_is_taken_from_behind_the_end_that_was_asked_for() -> None:
    feed = Feed(2)
    feed.append("a", 25 * SECOND, rows=4, part=0)
    feed.append("a", 0, rows=2, part=1)
    timing = Timing(0, 10 * SECOND, None)
    first = next_offsets(begin(2), feed.appended_ranges, {0: 4, 1: 0}, 2, 0, timing)
    assert first.offsets == {0: 4, 1: 0}


def test_many_producers_of_one_append_each_do_not_hold_time_back() -> None:
    feed = Feed()
    for number in range(100):
        feed.append(f"producer-{number}", number * SECOND, rows=3, at=number * SECOND)
    at, clocks = begin(), []
    for _ in range(10):
        at = feed.step(at, limit=10)
        clocks.append(at.watermark)
    assert clocks == sorted(clocks) and clocks[0] == 0 and clocks[-1] > 20 * SECOND


def test_a_partition_that_is_read_in_long_ranges_keeps_pace() -> None:
    feed = Feed(2)  # as on Kafka: an appended range is told by its last record
    for number in range(10):
        received = (number + 1) * 10 * SECOND
        feed.append("", received, rows=10, at=received, part=0, first=received - 10 * SECOND)
        feed.append("", received, rows=1, at=received, part=1, first=received - 10 * SECOND)
    at, clocks = begin(2), []
    while at.offsets != feed.ends():
        at = feed.step(at, limit=20)
        assert at.offsets[0] // 10 - at.offsets[1] in (0, 1)
        clocks.append(at.watermark // SECOND)
    assert clocks == sorted(clocks) and clocks[-1] == 100 and clocks[2] >= 20


def test_who_comes_much_later_is_not_waited_for_while_catching_up() -> None:
    feed = Feed(2)
    feed.append("a", 25 * SECOND, rows=2, part=0)
    feed.append("a", 26 * SECOND, rows=2, part=0, at=SECOND)
    feed.append("b", 0, rows=2, part=1, at=3600 * SECOND)
    assert feed.step(begin(2), limit=2).watermark == 25 * SECOND


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


HOUR = 3600 * SECOND


def claimed(offsets: SourceProgress, producer: str) -> Claim:
    return offsets.claims[0, producer]


def test_a_producer_hours_ahead_does_not_move_the_clock_when_the_others_fall_silent() -> None:
    feed = Feed()
    feed.append("right", 99 * SECOND, at=100 * SECOND)
    feed.append("wrong", 3 * HOUR, at=105 * SECOND)
    first = feed.step(begin(), now=105 * SECOND, ahead=600 * SECOND)
    assert first.watermark == 99 * SECOND
    feed.append("wrong", 3 * HOUR + SECOND, at=120 * SECOND)
    alone = feed.step(first, now=120 * SECOND, ahead=600 * SECOND)
    assert alone.watermark == 120 * SECOND, "its events count from their receipt"
    feed.append("right", 121 * SECOND, at=121 * SECOND)
    assert feed.step(alone, now=121 * SECOND, ahead=600 * SECOND).watermark == 120 * SECOND


def test_without_the_guard_it_would() -> None:
    feed = Feed()
    feed.append("right", 99 * SECOND, at=100 * SECOND)
    feed.append("wrong", 3 * HOUR, at=120 * SECOND)
    assert feed.step(begin(), now=120 * SECOND).watermark == 3 * HOUR


def test_a_producer_that_is_ahead_still_holds_the_clock_where_it_is_heard_of() -> None:
    feed = Feed()
    feed.append("wrong", 3 * HOUR, at=100 * SECOND)
    feed.append("right", 107 * SECOND, at=107 * SECOND)
    assert feed.step(begin(), now=107 * SECOND, ahead=SECOND).watermark == 100 * SECOND


def test_as_far_ahead_as_is_allowed_counts_as_it_is() -> None:
    feed = Feed()
    feed.append("a", 160 * SECOND, at=100 * SECOND)
    reached = feed.step(begin(), now=100 * SECOND, ahead=60 * SECOND)
    assert (reached.watermark, claimed(reached, "a").ahead) == (160 * SECOND, 0)


def test_where_the_log_does_not_tell_when_it_received_something_every_time_is_believed() -> None:
    feed = Feed()
    feed.append("", 100 * SECOND, at=-1000)
    assert feed.step(begin(), now=100 * SECOND, ahead=SECOND).watermark == 100 * SECOND


def test_lateness_is_taken_off_the_time_of_receipt_too() -> None:
    feed = Feed()
    feed.append("a", 3 * HOUR, at=100 * SECOND)
    assert feed.step(begin(), now=100 * SECOND, lateness=30 * SECOND, ahead=0).watermark == 70 * SECOND


def test_a_mark_is_a_promise_and_counts_however_far_ahead() -> None:
    feed = Feed()
    feed.append("a", 100 * SECOND, at=100 * SECOND)
    feed.mark("a", 3 * HOUR, at=100 * SECOND)
    reached = feed.step(begin(), now=100 * SECOND, ahead=60 * SECOND)
    assert (reached.watermark, claimed(reached, "a").ahead) == (3 * HOUR, 0)


def test_who_is_ahead_is_written_down_until_its_clock_is_right_again() -> None:
    feed = Feed()
    feed.append("till", 3 * HOUR, at=100 * SECOND)
    feed.append("till", 101 * SECOND, at=101 * SECOND)
    first = feed.step(begin(), now=101 * SECOND, ahead=60 * SECOND)
    assert claimed(first, "till").ahead == 3 * HOUR - 100 * SECOND
    assert first.to_json()["claims"]["0"]["till"]["ahead"] == 3 * HOUR - 100 * SECOND
    feed.append("other", 102 * SECOND, at=102 * SECOND)
    second = feed.step(first, now=102 * SECOND, ahead=60 * SECOND)
    assert claimed(second, "till").ahead, "it has not been heard of"
    feed.append("till", 103 * SECOND, at=103 * SECOND)
    third = feed.step(second, now=103 * SECOND, ahead=60 * SECOND)
    assert third.to_json()["claims"]["0"]["till"] == {"time": 103 * SECOND, "received": 103 * SECOND}


def test_offsets_are_read_as_they_were_written() -> None:
    offsets = SourceProgress({0: 1, 1: 9}, 5, {(0, "a"): Claim(5, 7), (1, "b"): Claim(6, 8, 3)}, 8, True)
    assert SourceProgress.from_json(json.loads(json.dumps(offsets.to_json()))) == offsets


def test_fast_slow_silent_joining_and_broken_producers_share_a_topic() -> None:
    feed, lateness = Feed(), 2 * SECOND
    clocks, at = {}, begin()
    for second in range(100, 160):
        now = second * SECOND
        feed.append("fast", now, at=now)
        feed.append("slow", now - 5 * SECOND, at=now)
        feed.append("broken", now + 8 * HOUR, at=now)
        if second < 110:
            feed.append("silent", now - 20 * SECOND, at=now)
        if second >= 140:
            feed.append("joins", now - 60 * SECOND, at=now)
        at = feed.step(at, now=now, lateness=lateness, ahead=600 * SECOND)
        clocks[second] = at.watermark // SECOND
    assert clocks[109] == 109 - 20 - 2, "the slowest holds it"
    assert clocks[119] == clocks[109], "the silent one is waited for, ten seconds"
    assert clocks[120] == 120 - 5 - 2, "and then no longer"
    assert clocks[139] == 139 - 5 - 2
    assert clocks[159] == clocks[139], "one who joins with old events holds the clock, which never goes back"
    assert {producer for (_, producer), claim in at.claims.items() if claim.ahead} == {"broken"}


@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.integers(-50, 500), st.integers(0, 15)), min_size=1, max_size=30
    ),
    st.integers(0, 100),
    st.integers(0, 20),
)
@examples(200)
def test_records_never_move_the_clock_further_ahead_of_their_receipt_than_allowed(
    appends: list[tuple[str, int, int]], ahead: int, lateness: int
) -> None:
    feed, at, received = Feed(), begin(), 1000
    for producer, offset, wait in appends:
        received += wait
        feed.append(producer, received + offset, at=received)
        timing = {"lateness": lateness, "ahead": ahead}
        at, again = (feed.step(at, now=received, limit=1, **timing) for _ in range(2))
        assert again == at, "planned again, it is the same"
        assert at.watermark <= received + ahead - lateness


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


@given(
    st.lists(
        st.tuples(st.integers(0, 1), st.sampled_from("abc"), st.integers(0, 50), st.integers(1, 15)),
        min_size=1,
        max_size=20,
    ),
    st.sets(st.integers(0, 19)),
    st.one_of(st.none(), st.integers(1, 3)),
)
@examples(200)
def test_what_is_claimed_does_not_depend_on_the_micro_batches(
    appends: list[tuple[int, str, int, int]], stops: set[int], limit: int | None
) -> None:
    feed, now = Feed(2), 1000 * SECOND
    often, rarely = begin(2), begin(2)
    for number, (part, producer, time, wait) in enumerate(appends):
        now += wait * SECOND
        often = feed.step(often, now=now)
        feed.append(producer, time * SECOND, at=now, part=part)
        often = feed.step(often, now=now)
        if number in stops:
            rarely = feed.step(rarely, now=now, limit=limit)
    while rarely.offsets != feed.ends():
        rarely = feed.step(rarely, now=now, limit=limit)
    assert (_awake(rarely, now), rarely.furthest) == (_awake(often, now), often.furthest)
    assert rarely.watermark <= often.watermark, "nothing is late because it was read along with others"


def _awake(at: SourceProgress, now: int) -> dict[tuple[int, str], Claim]:
    """Return the claims that count: a plan that changes nothing leaves those that no longer do."""
    return {key: claim for key, claim in at.claims.items() if claim.received >= now - 10 * SECOND}


@given(APPENDS, st.lists(st.tuples(st.integers(1, 20), st.integers(0, 3)), min_size=1, max_size=15))
@examples(200)
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
        assert after.watermark >= at.watermark
        # First appends are taken whole: of three producers, to three partitions, with five rows each.
        assert sum(after.offsets.values()) - sum(at.offsets.values()) <= limit + 45
        assert all(after.offsets[part] >= at.offsets[part] for part in at.offsets)
        assert SourceProgress.from_json(json.loads(json.dumps(after.to_json()))) == after
        at = after
    assert at.offsets == feed.ends()
    claims: dict[tuple[int, str], int] = {}
    for part, ranges in feed.parts.items():
        for each in ranges:
            assert each.newest is not None
            claims[part, each.producer] = max(claims.get((part, each.producer), NEVER), each.newest)
    slowest = min(claims.values(), default=NEVER)
    assert feed.step(begin(3), now=now).watermark == slowest
    # A producer that is met only after the clock has passed its events is late.
    assert slowest <= at.watermark <= max(claims.values(), default=NEVER)
