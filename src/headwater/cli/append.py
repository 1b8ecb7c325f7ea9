"""Appending what comes from outside, row by numbered row, and naming the first that does not fit.

``produce`` and ``import`` share it. What a named producer has added is counted in the log itself,
so that the sum is true whoever else appends meanwhile. Invariant: when ``BadRow`` is raised, every
row before the one it names is in the log and none after it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise

import click
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater import Log, Position, Producer, Topic
from headwater.bisection import failing
from headwater.cli.formats import units
from headwater.errors import OffsetLost, RowError
from headwater.record import DELETED, META


class BadRow(Exception):
    """Row ``number`` does not fit its topic, because of ``reason``."""

    def __init__(self, number: int, reason: RowError):
        super().__init__(reason.message)
        self.number = number
        self.reason = reason


@contextmanager
def appending(log: Log, topic: Topic, producer: str | None) -> Iterator[Appending]:
    """Give what appends to a topic, and print at the end what came of it."""
    started = time.monotonic()
    with log.producer(topic.name, producer) as out:
        began = log.resolve(topic.name, "latest") if producer and out.sequence > 1 else None
        rows = Appending(out, topic)
        yield rows
        reached = out.flush()
    added = rows.done if began is None else _added(log, began, out.id)
    _sum_up(rows.done, added, time.monotonic() - started, reached)


def _added(log: Log, began: Position, producer: str) -> int | None:
    """Count what a producer has appended since a position; None where that is gone already."""
    now = log.resolve(began.topic, "latest")
    if now == began:
        return 0
    try:
        batches = log.read(began.topic, None, began, now, meta=True)
        return sum(pc.sum(pc.equal(b["_producer"], producer)).as_py() or 0 for b in batches)
    except OffsetLost:
        return None


def _sum_up(rows: int, added: int | None, seconds: float, reached: Position) -> None:
    position = f", up to {reached.brief}" if reached.offsets else ""
    if added == rows:
        rate = f" ({rows / max(seconds, 1e-3):,.0f} rows/s)" if rows else ""
        click.echo(f"{units.plural(rows, 'row')} in {seconds:.1f} s{rate}{position}")
    elif added is None:
        click.echo(f"{units.plural(rows, 'row')} in {seconds:.1f} s, some were there already{position}")
    else:
        duplicates = rows - added
        skipped = f"{duplicates:,} {'was' if duplicates == 1 else 'were'} there already"
        click.echo(f"{added:,} of {units.plural(rows, 'row')} added, {skipped}, in {seconds:.1f} s{position}")


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
        """Send whole; where a row is refused, append what fits before it."""

        def send(start: int, end: int) -> RowError | None:
            try:
                self.producer.send_batch(batch.slice(start, end - start), sequence=self.done + 1)
            except RowError as error:
                return error
            self.done += end - start
            return None

        for _, reason in failing(len(batch), send):
            raise BadRow(self.done + 1, reason)

    def _delete(self, batch: pa.RecordBatch) -> None:
        if not self.topic.compacted:
            reason = RowError(
                f'topic "{self.topic.name}" is not compacted, so nothing in it can be deleted by key',
                hint='leave the row out, or give the topic "--cleanup compact"',
            )
            raise BadRow(self.done + 1, reason)
        for row in batch.select(list(self.topic.key)).to_pylist():
            self.producer.delete(row, sequence=self.done + 1)
            self.done += 1


def _runs(batch: pa.RecordBatch) -> Iterator[tuple[bool, pa.RecordBatch]]:
    """Split a batch, without its metadata, where records and tombstones change over."""
    values = batch.select([name for name in batch.schema.names if name not in META])
    if DELETED not in batch.schema.names:
        if len(values):
            yield False, values
        return
    deleted = batch.column(DELETED).fill_null(False).to_numpy(zero_copy_only=False)
    edges = [0, *(np.flatnonzero(np.diff(deleted)) + 1).tolist(), len(batch)]
    for start, end in pairwise(edges):
        if end > start:
            yield bool(deleted[start]), values.slice(start, end - start)
