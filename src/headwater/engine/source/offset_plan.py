"""How far to read next: the offsets of a source, planned.

Everything the clock depends on is in the offsets, which Spark stores before it reads: a repeated micro-batch
has the same rows and the same clock.

Invariant: partitions are read in the order in which the log received them, so they keep pace.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from headwater.engine.source.watermark import (
    NEVER,
    UNKNOWN,
    Backlog,
    Claims,
    SourceProgress,
    Timing,
    advance_watermark,
    cap_at_now,
)
from headwater.log.appended_range import AppendedRange

SIBLINGS = 1_000_000
"""Microseconds within which a producer appends to several partitions what it has sent at once."""
LONGEST = 100_000
"""Records of an append that a limit does not cut in two, though it should."""


@dataclass(frozen=True)
class MicroBatchEnd:
    """Where the next micro-batch ends."""

    offsets: dict[int, int]
    taken: list[AppendedRange]
    waiting: int | None
    """When the log began to receive what comes next; None where everything has been read."""
    unread: dict[int, int]
    """The same for each partition of which not everything is read."""
    cut: AppendedRange | None = None
    """The range of which a part is read."""


def next_offsets(
    start: SourceProgress,
    appended_ranges: Callable[[int, int], Iterator[AppendedRange]],
    ends: Mapping[int, int],
    limit: int | None,
    now: int,
    timing: Timing | None,
) -> SourceProgress:
    """Return the offsets after the next micro-batch; the same ones where there is nothing new."""
    begins = {partition: start.offsets.get(partition, 0) for partition in ends}
    queue = _Queue({partition: appended_ranges(partition, at) for partition, at in begins.items()})
    plan = _plan(begins, queue, ends, limit, _Taken(start.claims, timing))
    known = cap_at_now(start, now)
    new = replace(known, offsets=plan.offsets)
    if timing is not None:
        new = advance_watermark(new, plan.taken, Backlog(now, plan.waiting, plan.unread, plan.cut), timing)
    unchanged = (new.offsets, new.watermark, new.silent) == (start.offsets, start.watermark, start.silent)
    return start if unchanged and known is start else new


def _plan(
    begins: Mapping[int, int], queue: _Queue, ends: Mapping[int, int], limit: int | None, taken: _Taken
) -> MicroBatchEnd:
    """Take appended ranges in the order in which the log began to receive them, so that partitions keep pace.

    Where the limit comes upon a producer that has made no claim, its append is taken whole, with what it
    has appended to other partitions at the same time: else the rest would be late by what is told first.
    So it is where an end would cut such an append: another query, which knows the producer, was cut there.
    """
    offsets, left = dict(begins), limit
    for each in queue.until():
        at, end = offsets[each.partition], ends[each.partition]
        room = (each.end if taken.is_cut(each, at, end) else min(each.end, end)) - at
        if each.mark:
            if each.base <= offsets[each.partition]:
                taken.add(each)
        elif left is not None and room > left and (taken.knows(each) or room > LONGEST):
            offsets[each.partition] += left
            queue.leave(each)
            return MicroBatchEnd(offsets, taken.ranges, each.began, queue.unread(offsets, ends), cut=each)
        elif room > 0:
            offsets[each.partition] += room
            left = None if left is None else max(left - room, 0)
            if offsets[each.partition] >= each.end:
                taken.add(each)
        elif each.end <= offsets[each.partition]:  # one of several that share their offsets
            taken.add(each)
        if left == 0:
            _take_siblings(queue, ends, offsets, taken, each.began + SIBLINGS)
            unread = queue.unread(offsets, ends)
            return MicroBatchEnd(
                offsets, taken.ranges, each.began if _behind(offsets, ends) else None, unread
            )
    return MicroBatchEnd(offsets, taken.ranges, None, {})


class _Queue:
    """The ranges of all partitions, in the order in which the log began to receive them."""

    def __init__(self, partitions: Mapping[int, Iterator[AppendedRange]]):
        self._rest = dict(partitions)
        self._heads: dict[int, AppendedRange] = {}
        self._left: dict[int, AppendedRange] = {}
        """The first of each partition that was not taken, or not all of it."""

    def until(self, time: int | None = None) -> Iterator[AppendedRange]:
        """Yield ranges up to those that the log began to receive at a time, or else all of them."""
        while heads := self._filled():
            number = min(heads, key=lambda number: (heads[number].began, number))
            if time is not None and heads[number].began > time:
                return
            yield heads.pop(number)

    def leave(self, each: AppendedRange) -> None:
        """Take note that a range is not taken, or not all of it."""
        self._left.setdefault(each.partition, each)

    def unread(self, offsets: Mapping[int, int], ends: Mapping[int, int]) -> dict[int, int]:
        """Return when the log began to receive what comes next in each partition that is behind its end."""
        behind = {number for number, end in ends.items() if offsets[number] < end}
        return {
            number: each.began
            for number, each in {**self._filled(), **self._left}.items()
            if number in behind
        }

    def _filled(self) -> dict[int, AppendedRange]:
        """Return the next range of each partition; one is fetched when it is asked for, not before."""
        for number in self._rest.keys() - self._heads.keys():
            each = next(self._rest[number], None)
            if each is None:
                del self._rest[number]
            else:
                self._heads[number] = each
        return self._heads


class _Taken:
    """The ranges of a plan, and whose claims are known with them: all are, where nobody asks the time."""

    def __init__(self, claims: Claims, timing: Timing | None):
        self.ranges: list[AppendedRange] = []
        self.new: set[str] = set()
        """Producers who make their first claim in a partition, or one after having been idle."""
        self._timing = timing
        self._heard = {key: claim.received for key, claim in claims.items()}

    def add(self, each: AppendedRange) -> None:
        self.ranges.append(each)
        if not self.knows(each):
            self.new.add(each.producer)
        key = each.partition, each.producer
        self._heard[key] = max(each.received, self._heard.get(key, NEVER))

    def knows(self, each: AppendedRange) -> bool:
        """Tell whether there is a claim of the same producer that is not idle when this begins."""
        if self._timing is None:
            return True
        heard = self._heard.get((each.partition, each.producer))
        return heard is not None and heard >= each.began - self._timing.idle

    def is_first_of(self, each: AppendedRange, producers: set[str]) -> bool:
        """Tell whether one of some producers makes its first claim in a partition."""
        return each.producer in producers and not self.knows(each)

    def is_cut(self, each: AppendedRange, at: int, end: int) -> bool:
        """Tell whether an end would cut what is told to be the first append of a producer."""
        return at < end < each.end <= at + LONGEST and each.producer != UNKNOWN and not self.knows(each)


def _take_siblings(
    queue: _Queue, ends: Mapping[int, int], offsets: dict[int, int], taken: _Taken, until: int
) -> None:
    """Take what those who make their first claim have appended to other partitions at the same time."""
    new = set(taken.new)
    for each in queue.until(until):
        at, within = offsets[each.partition], each.end <= ends[each.partition]
        if (
            within and each.mark and each.base <= at
        ):  # it would not be met again, once what follows it is taken
            taken.add(each)
        elif within and each.base <= at < each.end <= at + LONGEST and taken.is_first_of(each, new):
            offsets[each.partition] = each.end
            taken.add(each)
        else:
            queue.leave(each)


def _behind(offsets: Mapping[int, int], ends: Mapping[int, int]) -> bool:
    return any(offsets[partition] < end for partition, end in ends.items())
