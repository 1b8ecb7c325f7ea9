"""What time it is at a source: its watermark, which is the clock of those who read it.

Each producer makes a claim in each partition: its newest event time less the lateness that the
source allows, or a mark. The clock is the smallest claim of those that are not idle, so no fast
producer makes the others late. A producer whose own clock is wrong does not either: a time too far
ahead of its receipt counts as the time of receipt. Where everything is read and nobody was heard of for as
long as the source says, it is silent, and those who read others too need not wait for it. What the log has
received later than now, by a clock that was ahead, was heard now.

Topics of other programs do not say who wrote a record. Each of their partitions is then a producer of its
own, and one that nobody has heard of yet holds the clock for as long as an idle one.

Invariant: the clock never goes back; a claim counts only when all records behind it are read, and all that
the log received before its newest, so that a backlog makes nothing late that was not late when it came; and
no record moves the clock further ahead of its receipt than ``Timing.max_ahead``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from typing import Any

from headwater.log.appended_range import AppendedRange

NEVER = -(1 << 63)
UNKNOWN = ""
"""The producer of records that do not name theirs."""


@dataclass(frozen=True)
class Claim:
    """What one producer has said of time in one partition, and when the log last heard of it."""

    time: int
    received: int
    ahead: int = 0
    """Microseconds that its events were ahead of their receipt when last heard of; 0 where not too far."""

    def with_more(self, newer: Claim) -> Claim:
        """Return what it is after another one of the same producer."""
        ahead = max(self.ahead, newer.ahead)
        return Claim(max(self.time, newer.time), max(self.received, newer.received), ahead)

    def heard_at(self, received: int) -> Claim:
        """Return what it is after its producer was heard of, who has told no time."""
        return replace(self, received=max(self.received, received))

    def to_json(self) -> dict[str, int]:
        """Return the form that Spark stores; what nearly no claim has is left out."""
        stored = {"time": self.time, "received": self.received}
        return {**stored, "ahead": self.ahead} if self.ahead else stored


Claims = Mapping[tuple[int, str], Claim]
"""By partition and producer."""


@dataclass(frozen=True)
class SourceProgress:
    """How far a source has been read, and what is known of time there."""

    offsets: Mapping[int, int]
    watermark: int = NEVER
    claims: Claims = field(default_factory=dict)
    heard: int = NEVER
    """When the log last received anything that was read."""
    silent: bool = False
    """Whether everything is read and nothing was received for so long that nobody need wait."""
    furthest: int = NEVER
    """The newest claim of anybody, also of those who have been set aside since."""
    pending: tuple[AppendedRange, ...] = ()
    """Ranges that were read, but were received in part after some that are still to be read: when the log
    received those, nobody had heard of the newest time of these."""

    def to_json(self) -> dict[str, Any]:
        """Return the form that Spark stores."""
        claims: dict[str, dict[str, dict[str, int]]] = {}
        for (partition, producer), claim in sorted(self.claims.items()):
            claims.setdefault(str(partition), {})[producer] = claim.to_json()
        offsets = {str(partition): offset for partition, offset in sorted(self.offsets.items())}
        time = {
            "clock": self.watermark,
            "heard": self.heard,
            "silent": self.silent,
            "furthest": self.furthest,
        }
        pending = {"pending": [astuple(each) for each in self.pending]} if self.pending else {}
        return {"offsets": offsets, "claims": claims, **time, **pending}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> SourceProgress:
        """Read what ``to_json`` has written."""
        claims = {
            (int(partition), producer): Claim(**claim)
            for partition, producers in stored["claims"].items()
            for producer, claim in producers.items()
        }
        offsets = {int(partition): offset for partition, offset in stored["offsets"].items()}
        time = {name: stored[name] for name in ("heard", "silent", "furthest")}
        pending = tuple(AppendedRange(*each) for each in stored.get("pending", ()))
        return cls(offsets, stored["clock"], claims, pending=pending, **time)


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
class Backlog:
    """What is still to be read of a source, when a micro-batch ends."""

    now: int
    waiting: int | None
    """When the log began to receive what comes next; None where everything is read. That is the time in a
    backlog, and not now."""
    unread: Mapping[int, int]
    """The same for each partition of which not everything is read."""
    cut: AppendedRange | None = None
    """The range of which a part is read."""

    def is_after_unread(self, each: AppendedRange) -> bool:
        """Tell whether a range that was read may have come after records of another partition that were not.

        Of one whose producer is known, who has a claim for each partition, that is not asked.
        """
        others = [began for partition, began in self.unread.items() if partition != each.partition]
        return each.producer == UNKNOWN and bool(others) and each.received >= min(others)


def advance_watermark(
    progress: SourceProgress, taken: Sequence[AppendedRange], backlog: Backlog, timing: Timing
) -> SourceProgress:
    """Return how far a source was read with what the ranges before tell of time."""
    at = backlog.now if backlog.waiting is None else backlog.waiting
    known = {**_unheard(progress, taken), **progress.claims}
    due, pending = _due([*progress.pending, *taken], backlog)
    new = [(each, claim) for each in due if (claim := _claim(each, timing)) is not None]
    claims = {
        **known,
        **_heard(known, pending, at, timing.idle),
        **_heard_in_part(known, backlog.cut),
        **_claimed(known, new, timing.idle),
    }
    awake = {key: claim for key, claim in claims.items() if claim.received >= at - timing.idle}
    times = [claim.time for claim in awake.values()]
    # When all have gone silent, nothing holds the clock any more: it goes to the newest claim.
    furthest = max([progress.furthest, *(claim.time for claim in (*known.values(), *(c for _, c in new)))])
    watermark = max(progress.watermark, min(times) if times else furthest)
    heard = max([progress.heard, *(each.received for each in taken)])
    # One that has never told a time is waited for: its beginning may be older than everything else.
    quiet = backlog.waiting is None and watermark > NEVER
    silent = quiet and timing.silence is not None and heard < at - timing.silence
    timed = replace(
        progress, watermark=watermark, claims=awake, heard=heard, silent=silent, furthest=furthest
    )
    return cap_at_now(replace(timed, pending=tuple(pending)), backlog.now)


def cap_at_now(progress: SourceProgress, now: int) -> SourceProgress:
    """Let nothing have been heard later than now, by a clock that was ahead: it would never be long ago."""
    ahead = {key: each for key, each in progress.claims.items() if each.received > now}
    if now == NEVER or not (ahead or progress.heard > now):
        return progress
    claims = {key: replace(each, received=now) for key, each in ahead.items()}
    return replace(progress, claims={**progress.claims, **claims}, heard=min(progress.heard, now))


def _due(
    ranges: Iterable[AppendedRange], backlog: Backlog
) -> tuple[list[AppendedRange], list[AppendedRange]]:
    """Return the ranges whose times count, and those that may have come after what is still to be read."""
    due: list[AppendedRange] = []
    pending: dict[tuple[int, str, int, bool], AppendedRange] = {}
    for each in ranges:
        if backlog.is_after_unread(each):
            key = each.partition, each.producer, each.received, each.mark
            pending[key] = _both(pending.get(key, each), each)
        else:
            due.append(each)
    return due, list(pending.values())


def _both(one: AppendedRange, other: AppendedRange) -> AppendedRange:
    """Return a range that tells what two of them tell; which offsets it covers is asked no more."""
    times = [each.newest for each in (one, other) if each.newest is not None]
    return replace(other, newest=max(times, default=None), first=min(one.began, other.began))


def _unheard(progress: SourceProgress, taken: Sequence[AppendedRange]) -> Claims:
    """Return claims that hold the clock, of partitions that nobody has heard of when reading begins."""
    unknown = [each for each in taken if each.producer == UNKNOWN and each.newest is not None]
    if progress.heard > NEVER or not unknown:
        return {}
    began = min(each.began for each in unknown)
    return {(partition, UNKNOWN): Claim(NEVER, began) for partition in progress.offsets}


def _heard(
    claims: Claims, pending: Iterable[AppendedRange], now: int, idle: int
) -> dict[tuple[int, str], Claim]:
    """Return the claims of those who have said something by now, but of whose times nothing counts yet.

    One who was idle until then claims anew, what is not known yet.
    """
    heard = dict(claims)
    for each in (each for each in pending if each.newest is not None and each.began <= now):
        key = (each.partition, each.producer)
        awake = key in heard and heard[key].received >= each.began - idle
        heard[key] = heard[key].heard_at(now) if awake else Claim(NEVER, now)
    return heard


def _heard_in_part(claims: Claims, cut: AppendedRange | None) -> dict[tuple[int, str], Claim]:
    """Return the claim of an unknown producer of whose range a part is read: nobody knows when that came."""
    if cut is None or cut.producer != UNKNOWN or (cut.partition, UNKNOWN) not in claims:
        return {}
    return {(cut.partition, UNKNOWN): claims[cut.partition, UNKNOWN].heard_at(cut.received)}


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
