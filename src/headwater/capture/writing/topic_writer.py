"""What the writers of a captured table and of an outbox have in common: two producers for one topic.

The stream's producer numbers what it writes, so that what is delivered again after a crash is not stored
twice. What a snapshot finds goes by another one, which numbers nothing. Invariant: the two never have rows on
their way at the same time, so what comes later in the source's history comes later in the topic.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import NamedTuple

from headwater.bisection import failing
from headwater.closing import Closing
from headwater.errors import RowError
from headwater.log import Log


class UnfitRow(NamedTuple):
    """A row that cannot be stored as it is declared."""

    row: int
    """Its place in what was written."""
    reason: str
    number: int | None = None
    """That of the change in the stream; None of a row that a snapshot has found."""


class TopicWriter(Closing):
    """Appends what is captured to a topic."""

    def __init__(self, log: Log, capture: str, topic: str):
        self._log, self._topic = log, topic
        self._snapshot_waits = False
        with ExitStack() as opened:
            self._stream = opened.enter_context(log.producer(topic, id=f"capture.{capture}"))
            self._snapshot = opened.enter_context(log.producer(topic, id=f"capture.{capture}.snapshot"))
            self._opened = opened.pop_all()
        self.is_first = not (self._stream.sequence or self._snapshot.sequence)
        """Whether nothing was written by this capture before: the topic is new."""
        self.stored = {topic: self._stream.sequence}
        """The number behind the last one that the log has of each topic, when it begins."""

    @property
    def producers(self) -> tuple[str, str]:
        """The ids of those who write for it: the stream's, and the snapshot's."""
        return self._stream.id, self._snapshot.id

    def mark(self, before: int) -> None:
        """Tell readers that nothing from before a time comes any more, behind all that was written."""
        self.flush()
        self._stream.mark(before)
        if self._snapshot.sequence:  # readers who have heard of it would wait for it
            self._snapshot.mark(before)

    def flush(self) -> None:
        """Make everything durable."""
        self._settle_snapshot()
        self._stream.flush()

    def close(self) -> None:
        """Let go of the topics."""
        self._opened.close()

    def _settle_stream(self) -> None:
        """Wait until what the stream has told is stored: only then a snapshot goes on behind it."""
        self._stream.flush()
        self._snapshot_waits = True

    def _settle_snapshot(self) -> None:
        """Wait until what a snapshot has found is stored: only then the stream goes on behind it."""
        if self._snapshot_waits:
            self._snapshot.flush()
            self._snapshot_waits = False

    def _append_fitting(
        self, count: int, unfit: Mapping[int, str], send: Callable[[int, int], None], first: int | None = None
    ) -> list[UnfitRow]:
        """Send rows, from one place to another, but for those that do not fit: they are returned.

        ``first`` is the number of the first in the stream.
        """

        def attempt(start: int, end: int) -> RowError | None:
            for row in unfit:
                if start <= row < end:
                    return RowError(f'a value does not fit topic "{self._topic}"', detail=unfit[row])
            try:
                send(start, end)
            except RowError as error:
                return error
            return None

        bad = failing(count, attempt)
        return [
            UnfitRow(row, error.reason or error.message, None if first is None else first + row)
            for row, error in bad
        ]
