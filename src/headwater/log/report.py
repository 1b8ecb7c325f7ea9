"""What a log tells of itself: sizes, lag, and what verification found."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from headwater.topic import Topic


@dataclass(frozen=True)
class PartitionInfo:
    """One partition as ``describe`` tells it."""

    partition: int
    earliest: int
    """First offset that can still be read, from the archive too."""
    end: int
    """Offset the next record will get."""
    size: int | None
    """Bytes on disk, without the archive; None where the backend does not tell."""
    segments: int | None
    oldest: datetime | None
    """When the oldest record still readable was received."""
    newest: datetime | None


@dataclass(frozen=True)
class TopicInfo:
    """A topic with its sizes, as ``describe`` tells it."""

    topic: Topic
    partitions: tuple[PartitionInfo, ...]
    rate: float
    """Records per second received lately (over the last minute at most)."""

    @property
    def records(self) -> int:
        """Offsets between the earliest and the end; compaction leaves fewer records."""
        return sum(p.end - p.earliest for p in self.partitions)

    @property
    def size(self) -> int | None:
        """Bytes on disk, where the backend tells."""
        known = [p.size for p in self.partitions if p.size is not None]
        return sum(known) if len(known) == len(self.partitions) else None


@dataclass(frozen=True)
class Lag:
    """How far a group is behind in one partition."""

    group: str
    topic: str
    partition: int
    committed: int
    end: int
    records: int
    """Records not yet committed."""
    behind: timedelta
    """Age of the oldest record not yet committed; zero when there is none."""


@dataclass(frozen=True)
class Finding:
    """Something ``verify`` found wrong."""

    topic: str
    partition: int | None
    """None where it concerns the topic as a whole."""
    problem: str


@dataclass(frozen=True)
class Verification:
    """What ``verify`` checked and what it found."""

    batches: int = 0
    records: int = 0
    bytes: int = 0
    findings: tuple[Finding, ...] = field(default=())

    @property
    def ok(self) -> bool:
        """Whether nothing was found wrong."""
        return not self.findings

    def __add__(self, other: Verification) -> Verification:
        return Verification(
            self.batches + other.batches,
            self.records + other.records,
            self.bytes + other.bytes,
            self.findings + other.findings,
        )
