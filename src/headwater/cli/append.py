"""Appending what comes from outside, row by numbered row, and naming the first that does not fit.

``produce`` and ``import`` share it. Invariant: when ``BadRow`` is raised, every row before the one
it names is in the log and none after it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa

from headwater.errors import RowError
from headwater.log import Producer, Topic
from headwater.log.record import META


class BadRow(Exception):
    """Row ``number`` does not fit its topic, because of ``reason``."""

    def __init__(self, number: int, reason: RowError):
        super().__init__(reason.message)
        self.number = number
        self.reason = reason


@dataclass
class Appending:
    """Appends rows that are numbered from 1; the number is the producer's sequence.

    With a named producer, rows that the log has from an earlier run are left out by it.
    """

    producer: Producer
    topic: Topic
    done: int = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Append the next rows, or as many as fit before raising ``BadRow``."""
        for deleted, run in _runs(batch):
            if deleted:
                self._delete(run)
            else:
                self._send(run)

    def _send(self, batch: pa.RecordBatch) -> None:
        """Send whole; where a row is refused, halve until it is found, appending what fits."""
        try:
            self.producer.send_batch(batch, sequence=self.done + 1)
            self.done += len(batch)
        except RowError as reason:
            if len(batch) == 1:
                raise BadRow(self.done + 1, reason) from None
            half = len(batch) // 2
            self._send(batch.slice(0, half))
            self._send(batch.slice(half))

    def _delete(self, batch: pa.RecordBatch) -> None:
        for row in batch.select(list(self.topic.key)).to_pylist():
            self.producer.delete(row, sequence=self.done + 1)
            self.done += 1


def _runs(batch: pa.RecordBatch) -> Iterator[tuple[bool, pa.RecordBatch]]:
    """Split a batch, without its metadata, where records and tombstones change over."""
    values = batch.select([name for name in batch.schema.names if name not in META])
    if "_deleted" not in batch.schema.names:
        if len(values):
            yield False, values
        return
    deleted = batch.column("_deleted").fill_null(False).to_numpy(zero_copy_only=False)
    edges = [0, *(np.flatnonzero(np.diff(deleted)) + 1).tolist(), len(batch)]
    for start, end in pairwise(edges):
        if end > start:
            yield bool(deleted[start]), values.slice(start, end - start)
