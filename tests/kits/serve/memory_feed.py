"""A feed in memory, slow and obvious: what sessions and hubs are held against."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from headwater.errors import OffsetLost
from headwater.serve.push.feed import Count, FeedChunk, Offsets, PushFeed, PushItem, PushSnapshot
from headwater.serve.push.filters import FilterTexts, PushFilter


@dataclass(frozen=True)
class NumberItem(PushItem):
    """A number in a partition; a filter by key takes the numbers of a remainder by three."""

    partition: int
    reached: int
    id: str

    def data(self, filter: PushFilter) -> bytes | None:
        taken = not filter.key or (self.reached - 1) % 3 == filter.key[0]
        return b"[%d,%d]" % (self.partition, self.reached - 1) if taken else None


class MemoryFeed(PushFeed):
    """Numbers 0, 1, 2, … in each partition, of which the oldest may be forgotten."""

    name, event = "memory", "number"

    def __init__(self, partitions: int, step: int = 3):
        self.ends = dict.fromkeys(range(partitions), 0)
        self.earliest = dict.fromkeys(range(partitions), 0)
        self._step, self._grown = step, threading.Condition()
        self.surprises: list[tuple[int, int, float]] = []
        """What is appended while somebody reads, one after the other: partition, count, a pause then."""
        self.delays: list[float] = []
        """How long the live reader takes for each of its chunks."""

    def append(self, partition: int, count: int = 1) -> None:
        with self._grown:
            self.ends = {**self.ends, partition: self.ends[partition] + count}
            self._grown.notify_all()

    def filter(self, texts: FilterTexts) -> PushFilter:
        return PushFilter()

    def check(self, since: str) -> None: ...

    def resolve(self, since: str) -> Offsets:
        pairs = (each.split("=") for each in since.split(","))
        return {int(partition): int(reached) for partition, reached in pairs}

    def id(self, offsets: Offsets) -> str:
        return ",".join(f"{partition}={reached}" for partition, reached in sorted(offsets.items()))

    def about(self, offsets: Offsets) -> dict[str, Any]:
        return {"at": self.id(offsets)}

    def newest(self) -> Offsets:
        return dict(self.ends)

    def read(self, offsets: Offsets, filter: PushFilter) -> Iterator[FeedChunk]:
        at, ends = dict(offsets), dict(self.ends)
        for partition, end in ends.items():
            if at[partition] < self.earliest[partition]:
                raise OffsetLost("gone", detail="", hint="", missed=1, earliest=self.earliest[partition])
            while at[partition] < end:
                yield self._chunk(at, partition, min(end, at[partition] + self._step))
                self._surprise()
        self._surprise()

    def _surprise(self) -> None:
        if self.surprises:
            partition, count, pause = self.surprises.pop()
            self.append(partition, count)
            time.sleep(pause)

    def follow(self, offsets: Offsets, stop: threading.Event) -> Iterator[FeedChunk]:
        at = dict(offsets)
        while not stop.is_set():
            with self._grown:
                self._grown.wait_for(lambda: self.ends != at, timeout=0.02)
                ends = dict(self.ends)
            for partition in sorted(ends, reverse=True):  # in another order than ``read`` has
                if at[partition] < ends[partition]:
                    time.sleep(self.delays.pop() if self.delays else 0)
                    yield self._chunk(at, partition, min(ends[partition], at[partition] + self._step))

    def snapshot(self, filter: PushFilter, count: Count) -> PushSnapshot:
        ends = dict(self.ends)
        count(sum(ends.values()))
        rows = [b"[%d,%d]" % (p, n) for p, end in ends.items() for n in range(end)]
        return PushSnapshot(ends, iter([rows] if rows else []))

    def _chunk(self, at: dict[int, int], partition: int, end: int) -> FeedChunk:
        items = []
        for reached in range(at[partition] + 1, end + 1):
            at[partition] = reached
            items.append(NumberItem(partition, reached, self.id(at)))
        return FeedChunk(items, dict(at))
