"""How far to read next, and what time it is then: the offsets of a source, planned.

Each producer makes a claim in each partition: its newest event time less the lateness that the
source allows, or a mark. The clock is the smallest claim of those that are not idle, so no fast
producer makes the others late. Everything it depends on is in the offsets, which Spark stores
before it reads: a repeated micro-batch has the same rows and the same clock.

Invariant: the clock never goes back, and a claim counts only when all records behind it are read.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from headwater.log.stretch import Stretch

NEVER = -(1 << 63)


@dataclass(frozen=True)
class Claim:
    """What one producer has said of time in one partition, and when the log last heard of it."""

    time: int
    received: int


@dataclass(frozen=True)
class Offsets:
    """How far a source has been read, and what is known of time there."""

    offsets: Mapping[int, int]
    clock: int = NEVER
    claims: Mapping[tuple[int, str], Claim] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the form that Spark stores."""
        claims: dict[str, dict[str, dict[str, int]]] = {}
        for (partition, producer), claim in sorted(self.claims.items()):
            told = {"time": claim.time, "received": claim.received}
            claims.setdefault(str(partition), {})[producer] = told
        offsets = {str(partition): offset for partition, offset in sorted(self.offsets.items())}
        return {"offsets": offsets, "clock": self.clock, "claims": claims}

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> Offsets:
        """Read what ``to_json`` has written."""
        claims = {
            (int(partition), producer): Claim(claim["time"], claim["received"])
            for partition, producers in told["claims"].items()
            for producer, claim in producers.items()
        }
        return cls({int(p): offset for p, offset in told["offsets"].items()}, told["clock"], claims)


@dataclass(frozen=True)
class Timing:
    """How a source tells time."""

    lateness: int | None = 0
    """Microseconds that events may be out of order; None where only marks tell the time."""
    idle: int = 10_000_000
    """Microseconds of silence after which a producer no longer holds the clock."""


@dataclass(frozen=True)
class Plan:
    """Where the next micro-batch ends."""

    offsets: dict[int, int]
    taken: list[Stretch]
    waiting: int | None
    """When the log received what comes next; None where everything has been read."""


def advance(
    start: Offsets,
    stretches: Callable[[int, int], Iterator[Stretch]],
    ends: Mapping[int, int],
    limit: int | None,
    now: int,
    timing: Timing | None,
) -> Offsets:
    """Return the offsets after the next micro-batch; the same ones where there is nothing new."""
    places = {partition: start.offsets.get(partition, 0) for partition in ends}
    plan = _plan(places, stretches, ends, limit)
    new = replace(start, offsets=plan.offsets)
    if timing is not None:
        new = _timed(new, plan, now if plan.waiting is None else plan.waiting, timing)
    unchanged = (new.offsets, new.clock) == (start.offsets, start.clock)
    return start if unchanged else new


def _plan(
    places: Mapping[int, int],
    stretches: Callable[[int, int], Iterator[Stretch]],
    ends: Mapping[int, int],
    limit: int | None,
) -> Plan:
    """Take stretches in the order in which the log received them, so that partitions keep pace."""
    offsets, taken, left = dict(places), [], limit
    queues = [_keyed(stretches(partition, at)) for partition, at in places.items()]
    for _, _, _, each in heapq.merge(*queues):
        room = min(each.end, ends[each.partition]) - offsets[each.partition]
        if each.mark:
            if each.base <= offsets[each.partition]:
                taken.append(each)
        elif left is not None and room > left:
            offsets[each.partition] += left
            return Plan(offsets, taken, each.received)
        elif room > 0:
            offsets[each.partition] += room
            left = None if left is None else left - room
            if offsets[each.partition] >= each.end:
                taken.append(each)
        elif each.end <= offsets[each.partition]:  # one of several that share their offsets
            taken.append(each)
        if left == 0:
            return Plan(offsets, taken, each.received if _behind(offsets, ends) else None)
    return Plan(offsets, taken, None)


def _behind(offsets: Mapping[int, int], ends: Mapping[int, int]) -> bool:
    return any(offsets[partition] < end for partition, end in ends.items())


def _keyed(stretches: Iterable[Stretch]) -> Iterator[tuple[int, int, int, Stretch]]:
    """Yield stretches with their place in the order: times of receipt never go back in a partition."""
    for number, each in enumerate(stretches):
        yield each.received, each.partition, number, each


def _timed(offsets: Offsets, plan: Plan, now: int, timing: Timing) -> Offsets:
    claims = dict(offsets.claims)
    for each in plan.taken:
        time = _claimed(each, timing)
        if time is not None:
            key = (each.partition, each.producer)
            before = claims.get(key, Claim(NEVER, NEVER))
            claims[key] = Claim(max(before.time, time), max(before.received, each.received))
    awake = {key: claim for key, claim in claims.items() if claim.received >= now - timing.idle}
    times = [claim.time for claim in awake.values()]
    # When all have gone silent, nothing holds the clock any more: it goes to the newest claim.
    reached = min(times) if times else max((claim.time for claim in claims.values()), default=NEVER)
    return replace(offsets, clock=max(offsets.clock, reached), claims=awake)


def _claimed(each: Stretch, timing: Timing) -> int | None:
    if each.mark or each.newest is None:
        return each.newest
    return None if timing.lateness is None else each.newest - timing.lateness
