"""What a log's backend implements, behind the checks and defaults of ``interface.py``.

Invariant: arguments have been checked when one of these methods is called, and a topic is passed as it
was declared then.
"""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Literal

import pyarrow as pa

from headwater.closing import Closing
from headwater.log.appended_range import AppendedRange
from headwater.log.expected_version import ConditionalAppender
from headwater.log.position import Extent, Position, Start, check_start, offsets_within
from headwater.log.queue import Queue
from headwater.log.queue_settings import QueueSettings
from headwater.log.record_batch import Appender
from headwater.log.report import Lag
from headwater.topic import Topic


class Backend(Closing):
    """The methods that differ between the embedded log and Kafka."""

    @abstractmethod
    def _add_topic(self, topic: Topic) -> Topic:
        """Make a topic; ``TopicExists`` if there is one of that name."""

    @abstractmethod
    def _appender(self, topic: str, id: str | None) -> Appender:
        """Return what appends for a producer."""

    @abstractmethod
    def _conditional_appender(self, topic: str, id: str | None) -> ConditionalAppender:
        """Return what checks and appends for a conditional producer."""

    def _resolve_offsets(self, topic: Topic, to: Start, numbers: Sequence[int]) -> dict[int, int]:
        """Return the offsets that a start stands for in partitions of a topic."""
        check_start(to, topic)
        if isinstance(to, int | Position):
            return offsets_within(to, topic.name, self._extents(topic, numbers))
        return self._offsets(topic, to, numbers)

    def _end_offsets(self, topic: Topic, end: Start, numbers: Sequence[int]) -> dict[int, int]:
        """Return where to stop reading; a bare offset is a limit, and may lie past the end."""
        check_start(end, topic)
        if not isinstance(end, int):
            return self._resolve_offsets(topic, end, numbers)
        return {number: min(end, each.end) for number, each in self._extents(topic, numbers).items()}

    @abstractmethod
    def _extents(self, topic: Topic, numbers: Sequence[int]) -> dict[int, Extent]:
        """Return what partitions hold now."""

    @abstractmethod
    def _offsets(
        self, topic: Topic, to: Literal["earliest", "latest"] | datetime, numbers: Sequence[int]
    ) -> dict[int, int]:
        """Return the offset that an end of the log, or a time of receipt, is in each partition."""

    @abstractmethod
    def _read_between(
        self, topic: Topic, first: Mapping[int, int], last: Mapping[int, int], meta: bool
    ) -> Iterator[pa.RecordBatch]:
        """Yield the records of partitions from their first offset to, not with, their last."""

    @abstractmethod
    def _follow(
        self,
        topic: Topic,
        first: Mapping[int, int],
        meta: bool,
        every: bool,
        stop: threading.Event | None,
    ) -> Iterator[pa.RecordBatch]:
        """Yield records as they arrive until ``stop`` is set; with ``every``, of later partitions too."""

    @abstractmethod
    def _appended_ranges(self, topic: Topic, partition: int, start: int) -> Iterator[AppendedRange]:
        """Yield what lies in a partition of a topic from an offset on, if it is still that topic."""

    @abstractmethod
    def _lag(self, group: str) -> list[Lag]:
        """Return a group's lag; nothing if there is no such group."""

    @abstractmethod
    def _set_committed(self, group: str, topic: Topic, offsets: Mapping[int, int]) -> None:
        """Set a group's committed offsets, in the partitions that are named."""

    @abstractmethod
    def _open_queue(self, topic: Topic, group: str, settings: QueueSettings | None, start: Start) -> Queue:
        """Open a queue over a topic; make it if it is new."""

    @abstractmethod
    def _forget_group(self, group: str) -> bool:
        """Drop a group's offsets, if it has no living members; tell whether it was done."""
