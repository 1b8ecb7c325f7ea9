"""Messages of one table become its changes: rows after and before, and what kind of change each is.

Invariant: a change that moves a row to another key is two, the deletion first; all others are one. What the
database has not sent is null: in a deletion all but the key, and what is marked as unchanged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.capture import change
from headwater.capture.change import SourceTable, TableChanges, Transactions
from headwater.capture.postgres import pgoutput
from headwater.capture.postgres.columns import Decoder
from headwater.capture.postgres.pgoutput import RowMessages
from headwater.capture.postgres.tuples import UNCHANGED, Cells, Flags, Places, filled, split

_TAG, _TUPLE = 5, 6
_NEW = ord("N")


@dataclass(frozen=True)
class Layout:
    """A table with what decodes its columns."""

    table: SourceTable
    decoders: tuple[Decoder, ...]

    @property
    def schema(self) -> pa.Schema:
        """The columns of rows, any of which may be null: of a deletion only the key is known."""
        return pa.schema([pa.field(each.name, each.type) for each in self.table.columns])


@dataclass(frozen=True)
class Columns:
    """Decoded columns, and why rows of them do not fit."""

    arrays: tuple[pa.Array, ...]
    unfit: dict[int, str]
    unchanged: dict[str, Flags]


@dataclass(frozen=True)
class _Places:
    """Which messages have an old and a new tuple, and where."""

    old_rows: Places
    new_rows: Places
    old: tuple[Cells, ...]
    new: tuple[Cells, ...]


def table_changes(run: RowMessages, layout: Layout, transactions: Transactions) -> TableChanges:
    """Return the changes of a run."""
    places = _places(run, len(layout.decoders))
    new, old = decoded(places.new, layout), decoded(places.old, layout)
    moved = _moved(run, places, (new, old), layout)
    order = _order(run, places, moved)
    return TableChanges(
        table=layout.table,
        operation=order.operation,
        rows=_batch(new, old, order.row, layout),
        transactions=transactions,
        transaction=run.transaction[order.message],
        index=run.index[order.message],
        before=_before(old, order.before, layout),
        unfit=_unfit(new, old, order.row),
        unchanged={name: _expanded(flags, order.row) for name, flags in new.unchanged.items()},
    )


def decoded(cells: Sequence[Cells], layout: Layout) -> Columns:
    """Decode the columns of a table."""
    if cells and not len(cells[0]):
        return Columns(tuple(pa.array([], each.type) for each in layout.decoders), {}, {})
    arrays: list[pa.Array] = []
    unfit: dict[int, str] = {}
    unchanged: dict[str, Flags] = {}
    for each, column, decoder in zip(cells, layout.table.columns, layout.decoders, strict=True):
        array, wrong = decoder.decode(each)
        arrays.append(array)
        for row, value in wrong.items():
            unfit.setdefault(row, f'column "{column.name}" cannot hold {value}')
        if (missing := each.kind == UNCHANGED).any():
            unchanged[column.name] = missing
    return Columns(tuple(arrays), unfit, unchanged)


def _places(run: RowMessages, columns: int) -> _Places:
    """Split the tuples of all messages; what is unchanged and in the old tuple is taken from there."""
    tag = run.buffer.bytes[run.start + _TAG]
    old_rows = np.flatnonzero(tag != _NEW)
    old = split(run.buffer, run.start[old_rows] + _TUPLE, columns)
    at = run.start + _TUPLE
    at[old_rows] = old.end + 1
    new_rows = np.flatnonzero(run.kind != pgoutput.DELETE)
    new = split(run.buffer, at[new_rows], columns).columns
    both = run.kind[old_rows] != pgoutput.DELETE
    if both.any():
        rows = np.searchsorted(new_rows, old_rows[both])
        new = tuple(filled(n, o.only(both), rows) for n, o in zip(new, old.columns, strict=True))
    return _Places(old_rows, new_rows, old.columns, new)


def _moved(run: RowMessages, places: _Places, columns: tuple[Columns, Columns], layout: Layout) -> Flags:
    """Tell which messages give a row another key."""
    moved = np.zeros(len(run.kind), bool)
    both = np.flatnonzero(run.kind[places.old_rows] == pgoutput.UPDATE)
    if not len(both):
        return moved
    rows = places.old_rows[both]
    after, before = pa.array(np.searchsorted(places.new_rows, rows)), pa.array(both)
    for number, column in enumerate(layout.table.columns):
        if column.name in layout.table.key:
            new, old = columns[0].arrays[number].take(after), columns[1].arrays[number].take(before)
            moved[rows] |= pc.not_equal(new, old).fill_null(False).to_numpy(zero_copy_only=False)
    return moved


@dataclass(frozen=True)
class _Order:
    """The changes, by the messages they are of; rows are numbered through the new ones, then the old ones."""

    message: Places
    operation: change.Codes
    row: Places
    before: Places
    """The number of the old row, or -1."""


def _order(run: RowMessages, places: _Places, moved: Flags) -> _Order:
    count = len(run.kind)
    message = np.repeat(np.arange(count), 1 + moved)
    second = np.concatenate([[False], message[1:] == message[:-1]]) if count else np.zeros(0, bool)
    first_of_two = moved[message] & ~second
    kind = run.kind[message]
    operation = np.where(kind == pgoutput.UPDATE, change.UPDATE, change.INSERT)
    operation = np.where((kind == pgoutput.DELETE) | first_of_two, change.DELETE, operation)
    operation = np.where(second, change.INSERT, operation).astype(np.int8)
    new, old = np.full(count, -1, np.int64), np.full(count, -1, np.int64)
    new[places.new_rows] = np.arange(len(places.new_rows))
    old[places.old_rows] = np.arange(len(places.old_rows))
    gone = operation == change.DELETE
    row = np.where(gone, len(places.new_rows) + old[message], new[message])
    return _Order(message, operation, row, np.where(second, -1, old[message]))


def _batch(new: Columns, old: Columns, row: Places, layout: Layout) -> pa.RecordBatch:
    count = len(new.arrays[0]) if new.arrays else 0
    if len(row) == count and (not count or int(row.max()) < count):
        return pa.RecordBatch.from_arrays(list(new.arrays), schema=layout.schema)
    pairs = zip(new.arrays, old.arrays, strict=True)
    at = pa.array(row)
    arrays = [pa.concat_arrays([after, before]).take(at) for after, before in pairs]
    return pa.RecordBatch.from_arrays(arrays, schema=layout.schema)


def _before(old: Columns, before: Places, layout: Layout) -> pa.RecordBatch | None:
    if not (before >= 0).any():
        return None
    at = pa.array(before, mask=before < 0)
    return pa.RecordBatch.from_arrays([each.take(at) for each in old.arrays], schema=layout.schema)


def _unfit(new: Columns, old: Columns, row: Places) -> dict[int, str]:
    if not new.unfit and not old.unfit:
        return {}
    count = len(new.arrays[0]) if new.arrays else 0
    reasons = {**new.unfit, **{count + number: reason for number, reason in old.unfit.items()}}
    return {at: reasons[number] for at, number in enumerate(row.tolist()) if number in reasons}


def _expanded(flags: Flags, row: Places) -> Flags:
    """Return flags of new rows as those of changes."""
    return np.append(flags, False)[np.minimum(row, len(flags))]
