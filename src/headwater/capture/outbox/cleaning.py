"""Deletes from an outbox the rows whose events are durable in the log, where that is asked for.

What is to be deleted is read from the topic itself: so a row that is deleted is one that is stored, and after
a crash nothing has to be remembered but how far it has come. Invariant: rows are deleted by their keys, some
at a time, each time in a short transaction of its own; one whose turn comes again is not there any more.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from headwater.capture.change import SourceTable
from headwater.capture.outbox.captured_outbox import CapturedOutbox, named_rows
from headwater.capture.outbox.published_records import published_records
from headwater.capture.source import CaptureSource
from headwater.capture.state import Offsets
from headwater.log import Log

ROWS = 1_000
"""Rows that are deleted in one transaction."""
MOST = 20_000
"""Rows after which the stream goes on, however many are left."""


class OutboxCleaning:
    """Deletes the rows of one outbox, behind what two producers have written."""

    def __init__(self, source: CaptureSource, log: Log, captured: CapturedOutbox, producers: tuple[str, ...]):
        self._source, self._log = source, log
        self._captured, self._producers = captured, producers

    def clean(self, table: SourceTable, done: Offsets) -> Offsets:
        """Delete what the topic has behind some offsets, or a good part of it, and return how far it is."""
        topic, reached, count = self._captured.topic, dict(done), 0
        if self._log.resolve(topic, "latest").offsets == reached:
            return done
        key = pa.schema([table.schema.field(name) for name in table.key])
        for part in published_records(self._log, topic, done, self._producers):
            if not self._delete(named_rows(part.names, key)):
                break
            reached[part.partition] = part.end
            count += len(part.names)
            if count >= MOST:
                break
        return reached

    def _delete(self, keys: pa.RecordBatch) -> bool:
        """Delete rows; return whether all of them are gone, or others were in the way."""
        parts: Sequence[int] = range(0, len(keys), ROWS)
        return all(self._source.delete_rows(self._captured.table, keys.slice(start, ROWS)) for start in parts)
