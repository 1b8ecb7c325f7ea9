"""How late the rows of a topic come, and which lateness a source of it needs.

The clock of the topic is kept as the engine keeps it (``headwater.engine.source.watermark``) while it keeps
up, with no lateness allowed and each append read as soon as it was received, by itself: the strictest
there is. A row that is so far behind that clock when it comes is late with every lateness that is shorter,
and in time with every other: one reading judges all settings. Marks are left out: what they make late, no
lateness changes.

Invariant: what is counted for a setting is exact. Memory does not grow with the topic: a batch of each
partition, and the producers that are not idle.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.durations import MICROSECOND
from headwater.engine.figures.delays import Delays, Ints
from headwater.engine.source.watermark import NEVER, Timing
from headwater.errors import UsageError
from headwater.log import Log, Position, Start
from headwater.pipeline.declaration import IDLE, MAX_AHEAD

DEFAULT = Timing(0, IDLE // MICROSECOND, MAX_AHEAD // MICROSECOND)
LADDER = tuple(timedelta(seconds=each) for each in (0, 1, 10, 60, 600, 3_600, 86_400))
"""Settings that are always judged."""
_EVEN = {
    **{"milliseconds": (100, 200, 500), "seconds": (1, 2, 5, 10, 20, 30), "minutes": (1, 2, 5, 10, 20, 30)},
    **{"hours": (1, 2, 3, 6, 12), "days": (1, 2, 3, 7, 14, 30, 90, 365)},
}
EVEN = tuple(timedelta(**{unit: count}) for unit, counts in _EVEN.items() for count in counts)
"""Settings that a person would write, of which the advice takes one."""
_FAR = 1 << 61
"""Times beyond are taken for it: the difference of any two fits into 64 bits."""
Key = tuple[int, str]


@dataclass(frozen=True)
class Profile:
    """How far behind the clock the rows of a topic came."""

    topic: str
    delays: Delays
    """Of the rows that have an event time: what lateness each would have needed."""
    timeless: int
    """Rows without an event time, which are late whatever the setting."""
    ahead: int
    """Rows too far ahead of their receipt to move the clock."""
    furthest: tuple[str, timedelta] | None
    """The producer of the one that was furthest ahead, and by how much."""

    @property
    def rows(self) -> int:
        """Rows that have an event time."""
        return self.delays.count

    def late(self, lateness: timedelta) -> int:
        """Return how many rows would have been late; it is known for the settings that were judged."""
        return self.delays.over(lateness)

    def advice(self, share: float = 0.999) -> timedelta | None:
        """Return the shortest even setting that keeps this share of the rows; None if none does."""
        for setting in (timedelta(), *EVEN):
            if self.late(setting) <= (1 - share) * self.rows:
                return setting
        return None


def profile(
    log: Log,
    topic: str,
    *,
    start: Start = "earliest",
    judged: Iterable[timedelta] = (),
    timing: Timing = DEFAULT,
    step: Callable[[int], None] = lambda rows: None,
) -> Profile:
    """Read a topic and return how late its rows came.

    ``judged`` are settings to count beside the usual ones, ``timing`` has the ``idle`` and ``max_ahead`` of
    the source (its lateness is ignored). ``step`` is called with rows done. Time begins anew
    at ``start``: what is read first is never late. Records that name no producer count as one of their
    partition. Nothing is changed; rows that come meanwhile are left out.

    >>> import headwater
    >>> log = headwater.open("memory:")
    >>> _ = log.create_topic("orders", "at TIMESTAMP", event_time="at")
    >>> with log.producer("orders", id="till") as producer:
    ...     for second in (10, 20, 15):
    ...         producer.send_batch([{"at": second * 1_000_000}])
    ...         _ = producer.flush()
    >>> found = profile(log, "orders")
    >>> found.rows, found.late(timedelta(0)), found.late(timedelta(seconds=10)), found.delays.largest
    (3, 1, 0, datetime.timedelta(seconds=5))
    """
    event_time = log.topic(topic).event_time
    if event_time is None:
        raise UsageError(
            f'topic "{topic}" has no event time, so nothing in it is late',
            hint="a topic gets one when it is made: `headwater topic create --event-time COLUMN`; "
            "where a source computes it, name its file: `headwater lateness TOPIC --pipeline FILE`",
        )
    tally = _Tally(Delays((*LADDER, *EVEN, *judged)), timing)
    clock = _Clock(timing)
    for received, partition, _, part, run in heapq.merge(*_queues(log, topic, start, event_time)):
        clock.wait(received)
        part.clocks[run] = clock.time
        clock.hear((partition, part.producers[run]), part.newest[run], received)
        if run == len(part.clocks) - 1:
            tally.add(part)
            step(len(part.times))
    return Profile(topic, tally.delays, tally.timeless, tally.ahead, tally.furthest)


class _Part:
    """Rows of a partition that were read together, in runs: each is what was appended together."""

    def __init__(self, times: Ints, received: Ints, producers: pa.Array):
        codes = producers.dictionary_encode()
        numbers = codes.indices.to_numpy()
        changes = (numbers[1:] != numbers[:-1]) | (received[1:] != received[:-1])
        self.times = times
        self.starts = np.concatenate([[0], np.flatnonzero(changes) + 1])
        self.received = received[self.starts]
        names = codes.dictionary.to_pylist()
        self.producers: list[str] = [names[number] for number in numbers[self.starts]]
        self.newest: list[int] = np.maximum.reduceat(times, self.starts).tolist()
        self.clocks = np.full(len(self.starts), NEVER)
        """What time it was when each run came, once that is known."""

    def by_row(self, values: Ints) -> Ints:
        """Return the values of runs as those of their rows."""
        return np.repeat(values, np.diff(self.starts, append=len(self.times)))


Run = tuple[int, int, int, _Part, int]
"""When it was received, its partition and number there, and where it is."""


def _queues(log: Log, topic: str, start: Start, event_time: str) -> list[Iterator[Run]]:
    first, last = log.resolve(topic, start).offsets, log.resolve(topic, "latest").offsets

    def runs(partition: int) -> Iterator[Run]:
        bounds = (Position(topic, {partition: offsets[partition]}) for offsets in (first, last))
        number = 0
        for batch in log.read(topic, partition, *bounds, meta=True):
            if len(batch):
                part = _part(batch, event_time)
                for run, received in enumerate(part.received.tolist()):
                    yield received, partition, number, part, run
                    number += 1

    return [runs(partition) for partition in last]


def _part(batch: pa.RecordBatch, event_time: str) -> _Part:
    stored = pc.fill_null(batch.column(event_time).cast(pa.int64()), NEVER).to_numpy()
    times = np.where(stored == NEVER, NEVER, np.clip(stored, -_FAR, _FAR))
    received = pc.fill_null(batch.column("_received").cast(pa.int64()), 0).to_numpy()
    return _Part(times, received, pc.fill_null(batch.column("_producer"), ""))


class _Clock:
    """The clock of a topic: the smallest claim of those that are not idle, append by append."""

    def __init__(self, timing: Timing):
        self.time = NEVER
        self._timing = timing
        self._claims: dict[Key, tuple[int, int]] = {}
        """Time and receipt of each, the one that was silent for the longest first."""
        self._heap: list[tuple[int, Key]] = []
        """Their times, and some that hold no longer: with many producers, to look at all takes long."""
        self._furthest = NEVER
        """The newest claim of anybody, also of those who have been let go."""

    def wait(self, until: int) -> None:
        """Take in that nothing more was appended before a time."""
        self._let_go(until - self._timing.idle)
        # When all have gone silent, it goes to the newest claim, whichever of them was let go first.
        self.time = max(self.time, self._smallest() if self._claims else self._furthest)

    def hear(self, key: Key, newest: int, received: int) -> None:
        """Take in that a producer appended something."""
        if newest == NEVER:
            return
        time = received if self._timing.ahead(newest, received) else newest
        before = self._claims.pop(key, (NEVER, NEVER))
        self._claims[key] = (max(time, before[0]), received)
        self._furthest = max(self._furthest, time)
        if time > before[0]:
            heapq.heappush(self._heap, (time, key))
        self.time = max(self.time, self._smallest())

    def _let_go(self, heard: int) -> None:
        """Drop those of which nothing was heard since."""
        while self._claims:
            key, (_, received) = next(iter(self._claims.items()))
            if received >= heard:
                return
            del self._claims[key]

    def _smallest(self) -> int:
        if len(self._heap) > 2 * len(self._claims) + 64:
            self._heap = [(time, key) for key, (time, _) in self._claims.items()]
            heapq.heapify(self._heap)
        while self._claims.get(self._heap[0][1], (NEVER, 0))[0] != self._heap[0][0]:
            heapq.heappop(self._heap)
        return self._heap[0][0]


@dataclass
class _Tally:
    """Counts rows whose clock is known."""

    delays: Delays
    timing: Timing
    timeless: int = 0
    ahead: int = 0
    furthest: tuple[str, timedelta] | None = None

    def add(self, part: _Part) -> None:
        timed = part.times != NEVER
        clocks = part.by_row(part.clocks)
        behind = np.where(clocks == NEVER, 0, clocks - np.where(timed, part.times, 0))
        self.delays.add(behind[timed])
        self.timeless += len(timed) - int(timed.sum())
        self._add_ahead(part)

    def _add_ahead(self, part: _Part) -> None:
        limit, received = self.timing.max_ahead, np.where(part.received > 0, part.received, _FAR)
        if limit is None or not (np.maximum(part.newest, received) - received > limit).any():
            return
        received = part.by_row(received)
        far = np.maximum(part.times, received) - received
        self.ahead += int((far > limit).sum())
        row = int(far.argmax())
        by = int(far[row]) * MICROSECOND
        if self.furthest is None or by > self.furthest[1]:
            run = int(np.searchsorted(part.starts, row, side="right")) - 1
            self.furthest = (part.producers[run], by)
