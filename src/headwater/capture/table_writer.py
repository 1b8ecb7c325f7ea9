"""Writes what happened to a table to its topics.

Changes of the stream are numbered, so that what is delivered again after a crash is not stored twice; each
takes its number, also one that does not fit. What a snapshot finds goes by another producer, which numbers
nothing: to find a row twice changes nothing. Invariant: the two producers never have rows on their way at the
same time, so what comes later in the source's history comes later in the topic.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headwater import durations
from headwater.bisection import failing
from headwater.capture import record_headers
from headwater.capture.captured_table import COMMITTED, CapturedTable
from headwater.capture.change import DELETE, OPERATIONS, READ, TRUNCATE, SnapshotChunk, TableChanges
from headwater.capture.last_rows import LastRows
from headwater.capture.live_keys import live_keys
from headwater.closing import Closing
from headwater.errors import RowError
from headwater.log import Log
from headwater.record import DELETED
from headwater.schema import TIMESTAMP, type_name


class UnfitRow(NamedTuple):
    """A row that cannot be stored as it is declared: its number in what was written, and why."""

    row: int
    reason: str


class TableWriter(Closing):
    """Appends to the topics of one table."""

    def __init__(self, log: Log, capture: str, captured: CapturedTable, sequence: int):
        captured.declare(log)
        self.captured, self.sequence = captured, sequence
        self._log = log
        self._topic = captured.topic
        self._last: LastRows | None = None
        self._stream = log.producer(self._topic, id=f"capture.{capture}")
        self._snapshot = log.producer(self._topic, id=f"capture.{capture}.snapshot")
        self._snapshot_waits = False
        self._history = (
            log.producer(captured.changes_topic, id=f"capture.{capture}") if captured.history else None
        )

    def write(self, changes: TableChanges) -> list[UnfitRow]:
        """Append changes of the stream, and return those that do not fit."""
        self._settle_snapshot()
        first = self.sequence
        bad = self._append(
            self._table(changes),
            changes.unfit,
            lambda rows, start: self._stream.send_changes(rows, sequence=first + start),
        )
        if self._history is not None:
            self._history.send_batch(self._changes(changes), sequence=self.sequence)
        self.sequence += len(changes)
        return bad

    def leave_out(self, count: int) -> None:
        """Count changes that are not written: their rows are still to be read by a snapshot."""
        self.sequence += count

    def last_rows(self, keys: set[bytes]) -> dict[bytes, Mapping[str, Any]]:
        """Return the last rows of some keys, as far as they were written, of those that have one."""
        self.flush()
        if self._last is None:
            self._last = LastRows(self._log, self._topic, self.captured.key)
        return self._last.find(keys)

    def write_chunk(self, chunk: SnapshotChunk) -> list[UnfitRow]:
        """Append rows of a snapshot, behind all that was written; return those that do not fit."""
        self._stream.flush()
        self._snapshot_waits = True
        return self._append(
            self._found(chunk.rows, READ, chunk.end),
            chunk.unfit,
            lambda rows, _: self._snapshot.send_changes(rows),
        )

    def delete_all(self, keys: pa.Table, position: str) -> None:
        """Append a deletion of each of some keys."""
        self._stream.flush()
        self._snapshot_waits = True
        self._snapshot.send_changes(self._found(keys, TRUNCATE, position))
        self._settle_snapshot()

    def truncate(self, position: str) -> None:
        """Append a deletion of every key that the topic has."""
        self.flush()
        self.delete_all(live_keys(self._log, self._topic, self.captured.key), position)

    def flush(self) -> None:
        """Make everything durable."""
        self._settle_snapshot()
        self._stream.flush()
        if self._history is not None:
            self._history.flush()

    def close(self) -> None:
        """Let go of the topics."""
        for producer in (self._stream, self._snapshot, self._history):
            if producer is not None:
                producer.close()

    def _settle_snapshot(self) -> None:
        """Wait until what a snapshot has found is stored: only then the stream goes on behind it."""
        if self._snapshot_waits:
            self._snapshot.flush()
            self._snapshot_waits = False

    def _append(
        self, table: pa.Table, unfit: Mapping[int, str], send: Callable[[pa.Table, int], None]
    ) -> list[UnfitRow]:
        """Send rows, given with the number of the first one, but for those that do not fit."""

        def attempt(start: int, end: int) -> RowError | None:
            for row in unfit:
                if start <= row < end:
                    return RowError(f'a value does not fit topic "{self._topic}"', detail=unfit[row])
            try:
                send(self._conformed(table.slice(start, end - start)), start)
            except RowError as error:
                return error
            return None

        bad = failing(table.num_rows, attempt)
        return [UnfitRow(row, error.reason or error.message) for row, error in bad]

    def _table(self, changes: TableChanges) -> pa.Table:
        """Return changes as the topic stores them."""
        committed = _times(changes)
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
        keys = {name: changes.rows.column(name) for name in self.captured.key}
        return pa.table(
            {
                **keys,
                "operation": pa.array(OPERATIONS).take(pa.array(changes.operation)),
                "before": before if len(before) else pa.nulls(len(changes), after.type),
                "after": after,
                COMMITTED: _times(changes),
                "position": pa.array(once.position, pa.string()).take(of),
                "transaction": pa.array(once.id, pa.string()).take(of),
                "index": pa.array(changes.index),
            }
        )

    def _struct(self, rows: pa.RecordBatch, present: npt.NDArray[np.bool_]) -> pa.Array:
        """Return rows as one column, null where they are not present."""
        fields = [field.with_nullable(True) for field in self.captured.schema]
        columns = [conformed(rows.column(field.name), field) for field in fields]
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


def _times(changes: TableChanges) -> pa.Array:
    of: Callable[[pa.Array], pa.Array] = pa.array(changes.transactions.committed).cast(TIMESTAMP).take
    return of(pa.array(changes.transaction))
