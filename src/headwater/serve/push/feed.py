"""What is followed: a view or a topic, read from any position on, and live.

A position is the number up to which each partition has been read; a view has one partition. Invariant: the
items after a position are the same and, within a partition, in the same order, whoever reads them and when.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headwater.serve.push.filters import FilterTexts, PushFilter

Offsets = Mapping[int, int]
"""How far each partition has been read."""
Count = Callable[[int], None]
"""Counts bytes that were read; raises where there is no room for them."""


class PushItem(ABC):
    """A change of a view, or a record of a topic, as it is pushed."""

    partition: int
    reached: int
    """How far its partition has been read after it."""
    id: str
    """How far all partitions had been read after it by whoever read it."""

    @abstractmethod
    def data(self, filter: PushFilter) -> bytes | None:
        """Return it as JSON, as one sees it through a filter; None where that leaves it out."""


@dataclass(frozen=True)
class FeedChunk:
    """Some items, and how far one has read after them."""

    items: Sequence[PushItem]
    offsets: Offsets


@dataclass(frozen=True)
class PushSnapshot:
    """The rows of a moment as JSON, a piece at a time, and how far that moment is."""

    offsets: Offsets
    rows: Iterator[Sequence[bytes]]


class PushFeed(ABC):
    """A view or a topic. Its methods block, and are called in threads of their own."""

    name: str
    """What tells it from every other feed of the server."""
    event: str
    """How its events are named: ``change`` or ``record``."""

    @abstractmethod
    def filter(self, texts: FilterTexts) -> PushFilter:
        """Return a filter, if it fits."""

    @abstractmethod
    def check(self, since: str) -> None:
        """Refuse a text that cannot be an id."""

    @abstractmethod
    def resolve(self, since: str) -> Offsets:
        """Return the position that an id, ``earliest`` or ``latest`` stands for."""

    @abstractmethod
    def id(self, offsets: Offsets) -> str:
        """Return a position as the id by which a client goes on from it."""

    @abstractmethod
    def about(self, offsets: Offsets) -> dict[str, Any]:
        """Return what clients are told of a position."""

    @abstractmethod
    def newest(self) -> Offsets:
        """Return how far there is something to read now."""

    @abstractmethod
    def read(self, offsets: Offsets, filter: PushFilter) -> Iterator[FeedChunk]:
        """Yield what there is now after a position; raises ``OffsetLost`` where it is no longer there."""

    @abstractmethod
    def follow(self, offsets: Offsets, stop: threading.Event) -> Iterator[FeedChunk]:
        """Yield everything after a position as it comes, until told to stop."""

    @abstractmethod
    def snapshot(self, filter: PushFilter, count: Count) -> PushSnapshot:
        """Return the rows that a filter leaves, if it has rows; each part is counted as it is read."""

    def rebuilt_since(self, offsets: Offsets) -> bool:
        """Tell whether it was computed anew since a position, so that its numbers mean nothing now."""
        return False


def passed(offsets: Offsets, others: Offsets) -> bool:
    """Tell whether everything before other offsets lies before these too."""
    return all(offsets.get(partition, 0) >= reached for partition, reached in others.items())


def farther(offsets: Offsets, others: Offsets) -> dict[int, int]:
    """Return the farther of two positions, partition by partition."""
    partitions = sorted({*offsets, *others})
    return {each: max(offsets.get(each, 0), others.get(each, 0)) for each in partitions}
