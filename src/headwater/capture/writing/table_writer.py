"""Writes what happened to a table to its topics.

Changes of the stream are numbered, so that what is delivered again after a crash is not stored twice; each
takes its number, also one that does not fit. What a snapshot finds is not: to find a row twice changes
nothing. Invariant: that of a writer of a topic; the topic of changes has what the topic has, under the same
numbers. Changes with values that were looked up in the topic are durable there before the topic has them:
delivered again, they could not be looked up again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headwater import durations
from headwater.bisection import failing
from headwater.capture.change import (
    DELETE,
    OPERATIONS,
    READ,
    TRUNCATE,
    SnapshotChunk,
    TableChanges,
    Truncation,
)
from headwater.capture.writing import record_headers
from headwater.capture.writing.captured_table import CapturedTable
from headwater.capture.writing.last_rows import LastRows
from headwater.capture.writing.leftovers import Leftovers
from headwater.capture.writing.live_rows import live_rows
from headwater.capture.writing.topic_writer import TopicWriter, UnfitRow
from headwater.errors import RowError
from headwater.log import Log, Producer
from headwater.pipeline.captured import COMMITTED
from headwater.record import DELETED
from headwater.schema import TIMESTAMP, type_name
from headwater.values import tombstones


class TableWriter(TopicWriter):
    """Appends to the topics of one table."""

    def __init__(self, log: Log, capture: str, captured: CapturedTable, sequence: int | None):
        captured.declare(log)
        super().__init__(log, capture, captured.topic)
        self.captured = captured
        self._last: LastRows | None = None
        self._history: Producer | None = None
        if captured.history:
            with self._opened.pop_all() as opened:  # what is open is closed again if this one cannot be
                self._history = opened.enter_context(log.producer(captured.changes_topic, id=self._stream.id))
                self._opened = opened.pop_all()
            self.stored[captured.changes_topic] = self._history.sequence
        # A number that the log has is left out: where none is remembered, it goes on behind them.
        self.sequence = max(self.stored.values()) if sequence is None else sequence

    def write(self, changes: TableChanges) -> list[UnfitRow]:
        """Append changes of the stream, and return those that do not fit."""
        self._settle_snapshot()
        first = self.sequence
        if self._history is not None and changes.filled:
            self._keep(changes, set(changes.unfit), self._history)
            self._history.flush()
        table = self._table(changes)

        def send(start: int, end: int) -> None:
            rows = self._conformed(table.slice(start, end - start))
            self._stream.send_changes(rows, sequence=first + start)

        bad = self._append_fitting(len(changes), changes.unfit, send, first)
        if self._history is not None and not changes.filled:
            self._keep(changes, {each.row for each in bad}, self._history)
        self.sequence += len(changes)
        return bad

    def judged(self, changes: TableChanges) -> TableChanges:
        """Return changes with all of those that do not fit, and write nothing."""
        table = self._table(changes)

        def convert(start: int, end: int) -> None:
            tombstones.from_changes(self._conformed(table.slice(start, end - start)), topic)

        topic = self._log.topic(self._topic)
        bad = self._append_fitting(len(changes), changes.unfit, convert)
        return replace(changes, unfit={each.row: each.reason for each in bad})

    def redelivered(self, count: int) -> int:
        """Return how many of the next changes the topic has passed, before a restart."""
        return min(max(0, self.stored[self._topic] - self.sequence), count)

    def leave_out(self, count: int) -> None:
        """Count changes that are not written: a snapshot is still to read their rows, or they are there."""
        self.sequence += count

    def last_rows(self, keys: set[bytes]) -> dict[bytes, Mapping[str, Any]]:
        """Return the last rows of some keys, as far as they were written, of those that have one."""
        self.flush()
        if self._last is None:
            self._last = LastRows(self._log, self._topic, self.captured.key)
        return self._last.find(keys)

    def leftovers(self) -> Leftovers:
        """Return the keys that the topic has, of which a snapshot is to find which are there."""
        self.flush()
        key = self.captured.key
        return Leftovers(live_rows(self._log, self._topic, key, key), self.captured)

    def write_chunk(self, chunk: SnapshotChunk) -> list[UnfitRow]:
        """Append rows of a snapshot, behind all that was written; return those that do not fit."""
        self._settle_stream()
        table = self._found(chunk.rows, READ, chunk.end)

        def send(start: int, end: int) -> None:
            self._snapshot.send_changes(self._conformed(table.slice(start, end - start)))

        return self._append_fitting(table.num_rows, chunk.unfit, send)

    def delete_all(self, keys: pa.Table, position: str) -> None:
        """Append a deletion of each of some keys."""
        self._settle_stream()
        self._snapshot.send_changes(self._found(keys, TRUNCATE, position))
        self._settle_snapshot()

    def truncate(self, emptied: Truncation) -> None:
        """Append a deletion of every key that the topic has; the topic of changes is told of each, too.

        Done again after a kill, it is told again there, at the same position and index.
        """
        self.flush()
        keys = live_rows(self._log, self._topic, self.captured.key, self.captured.key)
        if self._history is not None and keys.num_rows:
            with self._log.producer(self.captured.changes_topic, id=self._snapshot.id) as history:
                history.send_batch(self._emptied(keys, emptied))
        self.delete_all(keys, emptied.transactions.position[emptied.transaction])

    def flush(self) -> None:
        """Make everything durable."""
        super().flush()
        if self._history is not None:
            self._history.flush()

    def _keep(self, changes: TableChanges, unfit: set[int], history: Producer) -> None:
        """Append changes to the topic of changes, but for those that do not fit.

        Where only the row before does not fit, it is left out: it was set aside in its time.
        """

        def attempt(start: int, end: int) -> bool | None:
            if not unfit.isdisjoint(range(start, end)):
                return True
            part = changes.part(start, end)
            try:
                table = self._changes(part)
            except RowError:
                if end - start > 1:
                    return True
                table = self._changes(replace(part, before=None))
            history.send_batch(table, sequence=self.sequence + start)
            return None

        list(failing(len(changes), attempt))

    def _emptied(self, keys: pa.Table, emptied: Truncation) -> pa.Table:
        """Return the rows of the topic of changes that tell of a truncation."""
        once, number = emptied.transactions, emptied.transaction
        about = {
            "operation": pa.scalar(OPERATIONS[TRUNCATE]),
            COMMITTED: pa.scalar(int(once.committed[number])).cast(TIMESTAMP),
            "position": pa.scalar(once.position[number]),
            "transaction": pa.scalar(once.id[number]),
            "index": pa.scalar(emptied.index),
        }
        for field in self.captured.changes_schema:
            if field.name not in self.captured.key:
                value = about.get(field.name)
                column = pa.nulls(len(keys), field.type) if value is None else pa.repeat(value, len(keys))
                keys = keys.append_column(field, column)
        return keys

    def _table(self, changes: TableChanges) -> pa.Table:
        """Return changes as the topic stores them."""
        committed = commit_times(changes)
        columns = self._columns(changes.rows, committed)
        columns[DELETED] = pa.array(changes.operation == DELETE)
        columns["_occurred"] = committed
        columns["_headers"] = record_headers.of_changes(changes)
        return pa.table(columns)

    def _found(self, rows: pa.RecordBatch | pa.Table, operation: int, position: str) -> pa.Table:
        """Return rows that come from no transaction, as the topic stores them."""
        count = rows.num_rows
        moment = pa.repeat(pa.scalar(durations.now(), TIMESTAMP), count)
        columns = self._columns(rows, moment)
        columns[DELETED] = pa.repeat(operation == TRUNCATE, count)
        columns["_occurred"] = moment
        columns["_headers"] = record_headers.of_snapshot(operation, position, count)
        return pa.table(columns)

    def _columns(self, rows: pa.RecordBatch | pa.Table, committed: pa.Array) -> dict[str, pa.Array]:
        schema = self.captured.schema
        columns = {name: rows.column(name) for name in schema.names if name in rows.schema.names}
        if self.captured.event_time is None:
            columns[COMMITTED] = committed
        return columns

    def _conformed(self, table: pa.Table) -> pa.Table:
        """Return rows with the types of the topic, where a source tells them as text."""
        for field in self.captured.schema:
            if field.name in table.schema.names:
                told = table.column(field.name)
                column = conformed(told, field)
                if column is not told:
                    table = table.set_column(table.schema.get_field_index(field.name), field.name, column)
        return table

    def _changes(self, changes: TableChanges) -> pa.Table:
        """Return changes as the topic of changes stores them."""
        once, of = changes.transactions, pa.array(changes.transaction)
        after = self._struct(changes.rows, changes.operation != DELETE)
        known = changes.rows.slice(0, 0) if changes.before is None else changes.before
        before = self._struct(known, np.ones(len(known), bool))
        fields = [self.captured.schema.field(name) for name in self.captured.key]
        keys = {field.name: conformed(changes.rows.column(field.name), field) for field in fields}
        return pa.table(
            {
                **keys,
                "operation": pa.array(OPERATIONS).take(pa.array(changes.operation)),
                "before": before if len(before) else pa.nulls(len(changes), after.type),
                "after": after,
                COMMITTED: commit_times(changes),
                "position": pa.array(once.position, pa.string()).take(of),
                "transaction": pa.array(once.id, pa.string()).take(of),
                "index": pa.array(changes.index),
            }
        )

    def _struct(self, rows: pa.RecordBatch, present: npt.NDArray[np.bool_]) -> pa.Array:
        """Return rows as one column, null where they are not present."""
        fields = [field.with_nullable(True) for field in self.captured.schema]
        columns = [conformed(rows.column(field.name), field).cast(field.type) for field in fields]
        return pa.StructArray.from_arrays(columns, fields=fields, mask=pa.array(~present))


def conformed(column: pa.Array, field: pa.Field) -> pa.Array:
    """Return a column as it is declared, where a source tells it as text; else it is left to the log."""
    to = field.type
    if not pa.types.is_string(column.type) or pa.types.is_string(to) or pa.types.is_nested(to):
        return column
    try:
        return pc.cast(column, to)
    except pa.ArrowInvalid as error:
        reason = str(error).splitlines()[0]
        raise RowError(
            f'column "{field.name}" has a text that is no {type_name(field)}', detail=reason
        ) from None


def commit_times(changes: TableChanges) -> pa.Array:
    """Return when each change was committed."""
    of: Callable[[pa.Array], pa.Array] = pa.array(changes.transactions.committed).cast(TIMESTAMP).take
    return of(pa.array(changes.transaction))
