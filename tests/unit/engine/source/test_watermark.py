"""What time it is at a topic whose records do not say who wrote them: read live, or as a backlog."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

from hypothesis import example, given
from hypothesis import strategies as st

from headwater.engine.source.offset_plan import next_offsets
from headwater.engine.source.watermark import NEVER, UNKNOWN, Claim, SourceProgress, Timing
from headwater.log.appended_range import AppendedRange
from soaking import examples

PARTITIONS = 3
NOWHERE: list[set[int]] = [set(), set(), set()]


@dataclass(frozen=True)
class Record:
    """A record of another program: where it went, when it happened, when the broker received it."""

    partition: int
    time: int
    received: int


Topic = list[list[Record]]
"""The records of each partition."""
record = st.tuples(st.integers(0, PARTITIONS - 1), st.integers(0, 40), st.integers(0, 6))


def topic_of(drawn: Sequence[tuple[int, int, int]]) -> Topic:
    """Return a topic into which records came one after the other, some time after the one before."""
    received, topic = 100, [list[Record]() for _ in range(PARTITIONS)]
    for partition, time, pause in drawn:
        received += pause
        topic[partition].append(Record(partition, time, received))
    return topic


def ranges(
    topic: Topic, edges: Sequence[set[int]], partition: int, start: int, idle: int
) -> Iterator[AppendedRange]:
    """Yield the records of a partition as a reader has fetched them: in pieces that end anywhere.

    None is longer than what makes a producer idle, as on Kafka, where one ends with each second of receipt.
    """
    there = topic[partition]
    turns = {
        number
        for number, (one, other) in enumerate(pairwise(there), start=1)
        if one.received // idle != other.received // idle
    }
    ends = sorted(edge for edge in edges[partition] | turns | {len(there)} if start < edge <= len(there))
    for base, end in pairwise([start, *ends] if start < len(there) else []):
        piece = there[base:end]
        newest = max(each.time for each in piece)
        first, last = piece[0].received, piece[-1].received
        yield AppendedRange(partition, base, end, UNKNOWN, last, newest, first=first)


def late_live(topic: Topic, timing: Timing) -> set[Record]:
    """Return the records that come too late if each is read when it comes, by one who looks all the time."""
    everything = sorted((record for part in topic for record in part), key=lambda record: record.received)
    offsets, late, there = (
        SourceProgress(dict.fromkeys(range(PARTITIONS), 0)),
        set[Record](),
        [[] for _ in topic],
    )
    looked = 100  # when the first comes at the earliest
    for record in everything:
        for now in range(looked + 1, record.received + 1):  # somebody may become idle before it comes
            offsets = read(offsets, there, [set()] * PARTITIONS, None, now, timing)
        there[record.partition].append(record)
        if record.time < offsets.watermark:
            late.add(record)
        offsets = read(offsets, there, [set()] * PARTITIONS, None, record.received, timing)
        looked = record.received
    return late


def late_in_backlog(topic: Topic, edges: Sequence[set[int]], limit: int, timing: Timing) -> set[Record]:
    """Return the records that come too late if all are there before the first is read."""
    offsets, late = SourceProgress(dict.fromkeys(range(PARTITIONS), 0)), set[Record]()
    while any(offsets.offsets[number] < len(part) for number, part in enumerate(topic)):
        before = offsets
        offsets = SourceProgress.from_json(read(offsets, topic, edges, limit, 10_000, timing).to_json())
        for number, part in enumerate(topic):
            batch = part[before.offsets[number] : offsets.offsets[number]]
            late |= {record for record in batch if record.time < before.watermark}
    return late


def read(
    offsets: SourceProgress,
    topic: Topic,
    edges: Sequence[set[int]],
    limit: int | None,
    now: int,
    timing: Timing,
) -> SourceProgress:
    ends = {number: len(part) for number, part in enumerate(topic)}
    pieces = partial(ranges, topic, edges, idle=timing.idle)
    return next_offsets(offsets, lambda number, at: pieces(number, at), ends, limit, now, timing)


@given(
    drawn=st.lists(record, max_size=25),
    edges=st.lists(st.sets(st.integers(1, 24)), min_size=PARTITIONS, max_size=PARTITIONS),
    limit=st.integers(1, 12),
    lateness=st.integers(0, 10),
    idle=st.integers(1, 30),
)
@example([(0, 40, 0), (1, 0, 1), (0, 10, 1), (1, 39, 1)], [set(), set(), set()], 2, 0, 30)
@example([(0, 1, 0), (1, 1, 0), (2, 0, 1), (0, 0, 4), (1, 0, 3), (0, 0, 1), (0, 0, 0)], NOWHERE, 1, 0, 7)
@example([(1, 1, 0), (2, 0, 1), (0, 1, 1), (0, 0, 6), (1, 0, 0), (0, 0, 1), (0, 0, 0)], NOWHERE, 1, 0, 7)
@example([(0, 1, 0), (1, 0, 0), (2, 1, 0), (0, 0, 2), (1, 1, 0), (1, 0, 1)], [set(), {2}, set()], 1, 0, 1)
@examples(300)
def test_a_backlog_makes_nothing_late_that_was_not_late_when_it_came(
    drawn: list[tuple[int, int, int]], edges: list[set[int]], limit: int, lateness: int, idle: int
) -> None:
    topic, timing = topic_of(drawn), Timing(lateness=lateness, idle=idle)
    assert late_in_backlog(topic, edges, limit, timing) <= late_live(topic, timing)


def test_a_topic_that_was_filled_partition_by_partition_has_no_late_record() -> None:
    topic = [[Record(p, time, 100 + p) for time in range(50)] for p in range(PARTITIONS)]
    edges = [set(range(10, 50, 10))] * PARTITIONS
    assert late_in_backlog(topic, edges, 10, Timing(lateness=0, idle=10)) == set()


def test_a_partition_that_nobody_has_heard_of_holds_the_clock_until_it_is_idle() -> None:
    topic = [[Record(0, 40, 100), Record(0, 41, 105), Record(0, 42, 111)], [], []]
    offsets, clocks = SourceProgress(dict.fromkeys(range(PARTITIONS), 0)), []
    for count, now in ((1, 100), (2, 105), (3, 111)):
        offsets = read(offsets, [topic[0][:count], [], []], [set()] * PARTITIONS, None, now, Timing(idle=10))
        clocks.append(offsets.watermark)
    assert clocks == [NEVER, NEVER, 42]


def test_a_claim_waits_for_what_the_log_received_before_its_newest_record() -> None:
    topic = [[Record(0, 40, 100), Record(0, 10, 102)], [Record(1, 0, 101), Record(1, 39, 103)], []]
    begun = SourceProgress(
        dict.fromkeys(range(PARTITIONS), 0), claims={(2, "known"): Claim(99, 103)}, heard=1
    )
    edges: list[set[int]] = [{1}, set(), set()]
    planned = read(begun, topic, edges, 3, 103, Timing(idle=50))
    assert (planned.offsets, planned.watermark) == ({0: 1, 1: 2, 2: 0}, NEVER)
    assert [each.partition for each in planned.pending] == [1]
    planned = read(planned, topic, edges, 3, 103, Timing(idle=50))
    assert (planned.watermark, planned.pending) == (39, ())
