"""Appends batches of rows under numbers, so that one that is sent again is stored once.

Invariant: whatever fails in between, each batch is appended once and in order, or an error is raised.
"""

from __future__ import annotations

import threading

import pyarrow as pa

from headwater.closing import Closing
from headwater.ingest.checkpoints import producer_id
from headwater.ingest.retry import retry_while_away
from headwater.log import Log, Position


class SequencedProducer(Closing):
    """Appends to one topic for a way in, and waits for a log that is away."""

    def __init__(self, log: Log, topic: str, name: str, stop: threading.Event):
        self._producer = log.producer(topic, id=producer_id(name))
        self._stop = stop
        self.sequence = self._producer.sequence
        """The number of the next row, unless the caller numbers rows itself."""

    def append(self, rows: pa.Table | pa.RecordBatch, sequence: int | None = None) -> None:
        """Append rows, the first of them with a number; they are durable after ``flush``."""
        first = self.sequence if sequence is None else sequence
        retry_while_away(lambda: self._producer.send_batch(rows, sequence=first), self._stop)
        self.sequence = max(self.sequence, first + len(rows))

    def flush(self) -> Position:
        """Make everything durable, however long the log is away."""
        return retry_while_away(self._producer.flush, self._stop)

    def close(self) -> None:
        """Make everything durable and let go of the topic."""
        self._producer.close()
