"""How far to read next, and what time it is then: the offsets of a source, planned.

Each producer makes a claim in each partition: its newest event time less the lateness that the
source allows, or a mark. The clock is the smallest claim of those that are not idle, so no fast
producer makes the others late. A producer whose own clock is wrong does not either: a time too far
ahead of its receipt counts as the time of receipt. Where everything is read and nobody was heard of for as
long as the source says, it is silent, and those who read others too need not wait for it. What the log has
received later than now, by a clock that was ahead, was heard now. Everything the clock depends on is in the
offsets, which Spark stores before it reads: a repeated micro-batch has the same rows and the same clock.

Invariant: the clock never goes back, a claim counts only when all records behind it are read, and no
record moves the clock further ahead of its receipt than ``Timing.max_ahead``.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from headwater.log.appended_range import AppendedRange

NEVER = -(1 << 63)
SIBLINGS = 1_000_000
"""Microseconds within which a producer appends to several partitions what it has sent at once."""
LONGEST = 100_000
"""Records of an append that a limit does not cut in two, though it should."""
Keyed = tuple[int, int, int, AppendedRange]
"""An appended range with its place in the order of reading."""


@dataclass(frozen=True)
class Claim:
    """What one producer has said of time in one partition, and when the log last heard of it."""

    time: int
    received: int
    ahead: int = 0
    """Microseconds that its events were ahead of their receipt when last heard of; 0 where not too far."""

    def with_more(self, told: Claim) -> Claim:
        """Return what it is after another one of the same producer."""
        ahead = max(self.ahead, told.ahead)
        return Claim(max(self.time, told.time), max(self.received, told.received), ahead)

    def to_json(self) -> dict[str, int]:
        """Return the form that Spark stores; what nearly no claim has is left out."""
        told = {"time": self.time, "received": self.received}
        return {**told, "ahead": self.ahead} if self.ahead else told


Claims = Mapping[tuple[int, str], Claim]
"""By partition and producer."""


@dataclass(frozen=True)
class Offsets:
    """How far a source has been read, and what is known of time there."""

    offsets: Mapping[int, int]
    clock: int = NEVER
    claims: Claims = field(default_factory=dict)
    heard: int = NEVER
    """When the log last received anything that was read."""
    silent: bool = False
    """Whether everything is read and nothing was received for so long that nobody need wait."""
    furthest: int = NEVER
    """The newest claim of anybody, also of those who have been set aside since."""

    def to_json(self) -> dict[str, Any]:
        """Return the form that Spark stores."""
        claims: dict[str, dict[str, dict[str, int]]] = {}
        for (partition, producer), claim in sorted(self.claims.items()):
            claims.setdefault(str(partition), {})[producer] = claim.to_json()
        offsets = {str(partition): offset for partition, offset in sorted(self.offsets.items())}
        told = {"offsets": offsets, "clock": self.clock, "claims": claims}
        return {**told, "heard": self.heard, "silent": self.silent, "furthest": self.furthest}

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> Offsets:
        """Read what ``to_json`` has written."""
        claims = {
            (int(partition), producer): Claim(**claim)
            for partition, producers in told["claims"].items()
            for producer, claim in producers.items()
        }
        offsets = {int(partition): offset for partition, offset in told["offsets"].items()}
        return cls(offsets, told["clock"], claims, told["heard"], told["silent"], told["furthest"])


@dataclass(frozen=True)
class Timing:
    """How a source tells time."""

    lateness: int | None = 0
    """Microseconds that events may be out of order; None where only marks tell the time."""
    idle: int = 10_000_000
    """Microseconds of silence after which a producer no longer holds the clock."""
    max_ahead: int | None = None
    """Microseconds that an event may be ahead of its receipt and move the clock; None for any number."""
    silence: int | None = None
    """Microseconds of silence of all after which the source holds no others; None where it always does."""

    def ahead(self, newest: int, received: int) -> int:
        """Return how far a time is ahead of its receipt, if that is too far to be believed, else 0."""
        if self.max_ahead is None or received <= 0:  # old Kafka topics do not tell when that was
            return 0
        return newest - received if newest - received > self.max_ahead else 0


@dataclass(frozen=True)
class Plan:
    """Where the next micro-batch ends."""

    offsets: dict[int, int]
    taken: list[AppendedRange]
    waiting: int | None
    """When the log began to receive what comes next; None where everything has been read."""


def advance(
    start: Offsets,
    appended_ranges: Callable[[int, int], Iterator[AppendedRange]],
    ends: Mapping[int, int],
    limit: int | None,
    now: int,
    timing: Timing | None,
) -> Offsets:
    """Return the offsets after the next micro-batch; the same ones where there is nothing new."""
    places = {partition: start.offsets.get(partition, 0) for partition in ends}
    taken = _Taken(start.claims, timing)
    plan = _plan(places, appended_ranges, ends, limit, taken)
    known = _by_now(start, now)
    new = replace(known, offsets=plan.offsets)
    if timing is not None:
        new = _by_now(_timed(new, plan, now if plan.waiting is None else plan.waiting, timing), now)
    unchanged = (new.offsets, new.clock, new.silent) == (start.offsets, start.clock, start.silent)
    return start if unchanged and known is start else new


def _by_now(offsets: Offsets, now: int) -> Offsets:
    """Let nothing have been heard later than now, by a clock that was ahead: it would never be long ago."""
    ahead = {key: each for key, each in offsets.claims.items() if each.received > now}
    if now == NEVER or not (ahead or offsets.heard > now):
        return offsets
    claims = {key: replace(each, received=now) for key, each in ahead.items()}
    return replace(offsets, claims={**offsets.claims, **claims}, heard=min(offsets.heard, now))


def _plan(
    places: Mapping[int, int],
    appended_ranges: Callable[[int, int], Iterator[AppendedRange]],
    ends: Mapping[int, int],
    limit: int | None,
    taken: _Taken,
) -> Plan:
    """Take appended ranges in the order in which the log began to receive them, so that partitions keep pace.

    Where the limit comes upon a producer that has made no claim, its append is taken whole, with what it
    has appended to other partitions at the same time: else the rest would be late by what is told first.
    So it is where an end would cut such an append: another query, which knows the producer, was cut there.
    """
    offsets, left = dict(places), limit
    queue = heapq.merge(*(_keyed(appended_ranges(partition, at)) for partition, at in places.items()))
    for _, _, _, each in queue:
        at, end = offsets[each.partition], ends[each.partition]
        room = (each.end if taken.is_cut(each, at, end) else min(each.end, end)) - at
        if each.mark:
            if each.base <= offsets[each.partition]:
                taken.add(each)
        elif left is not None and room > left and (taken.knows(each) or room > LONGEST):
            offsets[each.partition] += left
            return Plan(offsets, taken.ranges, each.began)
        elif room > 0:
            offsets[each.partition] += room
            left = None if left is None else max(left - room, 0)
            if offsets[each.partition] >= each.end:
                taken.add(each)
        elif each.end <= offsets[each.partition]:  # one of several that share their offsets
            taken.add(each)
        if left == 0:
            whole = (other for _, _, _, other in queue if other.end <= ends[other.partition])
            _take_siblings(whole, offsets, taken, each.began + SIBLINGS)
            return Plan(offsets, taken.ranges, each.began if _behind(offsets, ends) else None)
    return Plan(offsets, taken.ranges, None)


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

    def is_cut(self, each: AppendedRange, at: int, end: int) -> bool:
        """Tell whether an end would cut what is told to be the first append of a producer."""
        return at < end < each.end <= at + LONGEST and each.producer != "" and not self.knows(each)


def _take_siblings(
    waiting: Iterator[AppendedRange], offsets: dict[int, int], taken: _Taken, until: int
) -> None:
    """Take what those who make their first claim have appended to other partitions at the same time."""
    new = set(taken.new)
    for each in waiting:
        if each.began > until:
            return
        at = offsets[each.partition]
        if each.mark and each.base <= at:  # it would not be met again, once what follows it is taken
            taken.add(each)
        elif each.base <= at < each.end <= at + LONGEST and each.producer in new and not taken.knows(each):
            offsets[each.partition] = each.end
            taken.add(each)


def _behind(offsets: Mapping[int, int], ends: Mapping[int, int]) -> bool:
    return any(offsets[partition] < end for partition, end in ends.items())


def _keyed(ranges: Iterable[AppendedRange]) -> Iterator[Keyed]:
    """Yield appended ranges with their place in the order: times of receipt never go back in a partition."""
    for number, each in enumerate(ranges):
        yield each.began, each.partition, number, each


def _timed(offsets: Offsets, plan: Plan, now: int, timing: Timing) -> Offsets:
    new = [(each, claim) for each in plan.taken if (claim := _claim(each, timing)) is not None]
    claims = {**offsets.claims, **_claimed(offsets.claims, new, timing.idle)}
    awake = {key: claim for key, claim in claims.items() if claim.received >= now - timing.idle}
    times = [claim.time for claim in awake.values()]
    # When all have gone silent, nothing holds the clock any more: it goes to the newest claim.
    heard_of = (*offsets.claims.values(), *(claim for _, claim in new))
    furthest = max([offsets.furthest, *(claim.time for claim in heard_of)])
    reached = min(times) if times else furthest
    clock, heard = max(offsets.clock, reached), max([offsets.heard, *(each.received for each in plan.taken)])
    # One that has never told a time is waited for: its beginning may be older than everything else.
    quiet = plan.waiting is None and clock > NEVER
    silent = quiet and timing.silence is not None and heard < now - timing.silence
    return replace(offsets, clock=clock, claims=awake, heard=heard, silent=silent, furthest=furthest)


def _claimed(known: Claims, new: Iterable[tuple[AppendedRange, Claim]], idle: int) -> Claims:
    """Return the claims of those who make new ones, as they are after them.

    One who was idle when the append began claims anew, also where no micro-batch in between has set its
    claim aside: what it claims does not depend on how the topic is split into micro-batches.
    """
    claims: dict[tuple[int, str], Claim] = {}
    for each, claim in new:
        key = (each.partition, each.producer)
        before = claims.get(key) or replace(known.get(key, claim), ahead=0)
        claims[key] = before.with_more(claim) if before.received >= each.began - idle else claim
    return claims


def _claim(each: AppendedRange, timing: Timing) -> Claim | None:
    if each.newest is None:
        return None
    if each.mark:  # a promise, which counts as it is, however far ahead
        return Claim(each.newest, each.received)
    if timing.lateness is None:
        return None
    ahead = timing.ahead(each.newest, each.received)
    newest = each.received if ahead else each.newest
    return Claim(newest - timing.lateness, each.received, ahead)
