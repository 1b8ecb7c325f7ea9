"""Writes the rows of an outbox to its topic, as events.

Insertions of the stream are numbered, as changes of tables are, so that what is delivered again after a crash
is stored once. What a snapshot finds cannot be numbered: after a crash it may find less. Its records say by
the header ``row`` whose they are, and what the topic has since the capture began is not told again.
Invariant: each row that the outbox has had since the capture began, and at its beginning, is one record; the
two producers never have rows on their way at the same time.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from headwater import durations
from headwater.capture.change import INSERT, READ, SnapshotChunk, SourceTable, TableChanges
from headwater.capture.outbox.captured_outbox import CapturedOutbox, row_names
from headwater.capture.outbox.published_records import published_names
from headwater.capture.outbox.published_rows import PublishedRows
from headwater.capture.state import Offsets
from headwater.capture.writing import record_headers
from headwater.capture.writing.table_writer import commit_times, conformed
from headwater.capture.writing.topic_writer import TopicWriter, UnfitRow
from headwater.log import Log
from headwater.pipeline.captured import COMMITTED, ROW
from headwater.schema import TIMESTAMP
from headwater.values import jsonl


class EventWriter(TopicWriter):
    """Appends to the topic of one outbox."""

    def __init__(
        self, log: Log, capture: str, captured: CapturedOutbox, sequence: int | None, table: SourceTable
    ):
        captured.declare(log)
        super().__init__(log, capture, captured.topic)
        self.captured = captured
        self._table = table
        self._published: PublishedRows | None = None
        self.sequence = self._stream.sequence if sequence is None else sequence

    def end(self) -> Offsets:
        """Return where the topic ends."""
        return dict(self._log.resolve(self.captured.topic, "latest").offsets)

    def expect_snapshot(self, since: Offsets) -> None:
        """Keep in mind what is told, from what the topic has behind some offsets on, until it is complete."""
        self._published = PublishedRows(
            published_names(self._log, self.captured.topic, since, self.producers)
        )

    def write(self, changes: TableChanges) -> list[UnfitRow]:
        """Append the insertions among changes of the stream, and return those that do not fit."""
        self._settle_snapshot()
        self._table, first = changes.table, self.sequence
        if self._published is not None:
            names = row_names(changes.rows, changes.table.key)
            self._published.note(names, changes.operation, changes.rows)
        numbers = np.flatnonzero(changes.operation == INSERT)
        inserted = changes.chosen(numbers)
        headers, times = record_headers.of_changes(inserted), commit_times(inserted)
        about = self._records(inserted.rows, headers, times)

        def send(start: int, end: int) -> None:
            rows = self._events(inserted.rows, about, start, end)
            self._stream.send_changes(rows, sequence=first + start)

        bad = self._append_fitting(len(numbers), inserted.unfit, send, first)
        self.sequence += len(numbers)
        return [each._replace(row=int(numbers[each.row])) for each in bad]

    def write_chunk(self, chunk: SnapshotChunk) -> list[UnfitRow]:
        """Append the rows of a snapshot that are no events yet; return those that do not fit."""
        self._settle_stream()
        published = PublishedRows() if self._published is None else self._published
        numbers = published.unpublished(row_names(chunk.rows, self._table.key), chunk.rows)
        rows = chunk.rows.take(pa.array(numbers))
        places = dict(zip(numbers.tolist(), range(len(numbers)), strict=True))
        moment = pa.repeat(pa.scalar(durations.now(), TIMESTAMP), len(rows))
        about = self._records(rows, record_headers.of_snapshot(READ, chunk.end, len(rows)), moment)
        unfit = {places[row]: why for row, why in chunk.unfit.items() if row in places}

        def send(start: int, end: int) -> None:
            self._snapshot.send_changes(self._events(rows, about, start, end))

        bad = self._append_fitting(len(rows), unfit, send)
        published.pass_chunk()
        self._published = None if chunk.last else published
        return [each._replace(row=int(numbers[each.row])) for each in bad]

    def _records(self, rows: pa.RecordBatch, headers: pa.MapArray, times: pa.Array) -> dict[str, pa.Array]:
        """Return what records have beside the columns of the events."""
        columns = {ROW: pa.array(row_names(rows, self._table.key), pa.binary())}
        columns |= {name: rows.column(name) for name in self.captured.headers}
        about = {"_occurred": times, "_headers": record_headers.with_columns(headers, columns)}
        return {COMMITTED: times, **about} if self.captured.timed else about

    def _events(self, rows: pa.RecordBatch, about: Mapping[str, pa.Array], start: int, end: int) -> pa.Table:
        """Return records of the events that some of the rows hold, or raise why one holds none."""
        part = {name: each.slice(start, end - start) for name, each in about.items()}
        return pa.table({**self._columns(rows.slice(start, end - start)), **part})

    def _columns(self, rows: pa.RecordBatch) -> dict[str, pa.Array]:
        """Return the columns of the events that rows hold, or raise why one holds none."""
        event = self.captured.event
        if event is None:
            return {each.name: conformed(rows.column(each.name), each) for each in self.captured.schema}
        texts = rows.column(event).fill_null("null").cast(pa.binary()).to_pylist()
        batch, bad = jsonl.decode(texts, self.captured.event_topic)
        for _, error in bad:
            raise error
        return dict(zip(batch.schema.names, batch.columns, strict=True))
