"""What can be told of a partition from its ends: offsets, times, sizes, rates, lag."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Literal

from headwater import durations
from headwater.log.embedded import archive
from headwater.log.embedded.catalog import StoredTopic
from headwater.log.embedded.partition import segment, times
from headwater.log.embedded.storage import Storage
from headwater.log.position import Extent
from headwater.log.report import Lag, PartitionInfo


class PartitionStats:
    """Looks at one partition as it is now."""

    def __init__(self, storage: Storage, stored: StoredTopic, number: int):
        self._storage, self._stored, self._number = storage, stored, number
        self._directory = stored.partition(number)
        self._head = storage.head(stored, number)
        self._archived = archive.listing(archive.partition_directory(storage.root, stored, number))
        self._segments = segment.listing(self._directory)

    def earliest(self) -> int:
        """Return the first offset that can be read."""
        bases = [a.base for a in self._archived] + [s.base for s in self._segments]
        return min(bases, default=self._head.end)

    def extent(self) -> Extent:
        """Return what the partition holds."""
        return Extent(self.earliest(), self._head.end)

    def resolve(self, to: Literal["earliest", "latest"] | datetime) -> int:
        """Return the offset that an end, or a time of receipt, stands for."""
        if isinstance(to, datetime):
            return self._offset_at(durations.micros(to))
        return self.earliest() if to == "earliest" else self._head.end

    def describe(self) -> PartitionInfo:
        """Return sizes and times."""
        oldest = next((durations.instant(at) for at in self._first_times() if at is not None), None)
        return PartitionInfo(
            partition=self._number,
            earliest=self.earliest(),
            end=self._head.end,
            size=sum(os.stat(each.path).st_size for each in self._segments),
            segments=len(self._segments),
            oldest=oldest,
            newest=durations.instant(self._head.received) if oldest is not None else None,
        )

    def rate(self) -> float:
        """Return the records per second of the last minute."""
        since = times.offset_at(self._directory, self._head, durations.now() - 60_000_000, self._stored.topic)
        return (self._head.end - since) / 60

    def lag(self, group: str, committed: Mapping[int, int]) -> Lag:
        """Return how far a group is behind."""
        end, earliest = self._head.end, self.earliest()
        done = committed.get(self._number, earliest)
        behind = self._age(max(done, earliest)) if done < end else timedelta()
        return Lag(group, self._stored.topic.name, self._number, done, end, max(0, end - done), behind)

    def _first_times(self) -> Iterator[int | None]:
        for archived in self._archived[:1]:
            found = archive.received(archived)
            yield found[0] if found is not None else None
        for each in self._segments:
            yield times.first_received(each, self._stored.topic)

    def _offset_at(self, received: int) -> int:
        for each in self._archived:
            times_there = archive.received(each)
            if times_there is not None and times_there[1] >= received:
                return archive.offset_at(each, received)
        return times.offset_at(self._directory, self._head, received, self._stored.topic)

    def _age(self, offset: int) -> timedelta:
        """Return how long ago the record at an offset, or the next one after it, was received."""
        received = next((archive.received_at(a, offset) for a in self._archived if offset < a.end), None)
        if received is None:
            received = times.received_at(self._directory, self._head, offset, self._stored.topic)
        return (
            timedelta()
            if received is None
            else durations.instant(durations.now()) - durations.instant(received)
        )
