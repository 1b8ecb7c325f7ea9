"""Rows of the outbox as changes of tables.

Invariant: the changes of a table are in the order of their ids; what stands between two of them, in another
table or form of it, is told by ``index``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.capture.change import (
    DELETE,
    TRUNCATE,
    UPDATE,
    SourceTable,
    TableChanges,
    Transactions,
    Truncation,
)
from headwater.capture.sqlite.connection import Row
from headwater.capture.sqlite.values import decoded

_SOURCE, _OPERATION, _VALUES = 1, 2, 4


def changes(
    rows: Sequence[Row], tables: Mapping[int, SourceTable], once: Transactions, start: int
) -> tuple[TableChanges | Truncation, ...]:
    """Return the changes of some tables, of a transaction that has begun behind an id."""
    found = [_part(part, tables[part[0][_SOURCE]], once, start) for part in _parts(rows, tables)]
    return tuple(sorted(found, key=_last))


def _parts(rows: Sequence[Row], tables: Mapping[int, SourceTable]) -> Iterator[list[Row]]:
    """Yield the rows of each table, apart before and behind a truncation, of whichever table."""
    open_parts: dict[int, list[Row]] = defaultdict(list)
    for row in rows:  # as many steps as the database's driver has taken to make them
        source = row[_SOURCE]
        if source not in tables:
            continue
        if row[_OPERATION] == TRUNCATE:
            yield from open_parts.values()
            open_parts.clear()
            yield [row]
        else:
            open_parts[source].append(row)
    yield from open_parts.values()


def _last(part: TableChanges | Truncation) -> int:
    return part.index if isinstance(part, Truncation) else int(part.index[-1])


def _part(rows: list[Row], table: SourceTable, once: Transactions, start: int) -> TableChanges | Truncation:
    if rows[0][_OPERATION] == TRUNCATE:
        return Truncation(table, once, 0, rows[0][0] - start - 1)
    columns = list(zip(*rows, strict=True))
    operation = np.array(columns[_OPERATION], np.int8)
    width = len(table.columns)
    after, unfit = batch(columns[_VALUES : _VALUES + width], table, operation)
    return TableChanges(
        table=table,
        operation=operation,
        rows=after,
        transactions=once,
        transaction=np.zeros(len(rows), np.int64),
        index=np.array(columns[0], np.int64) - start - 1,
        before=_before(after, columns[_VALUES + width : _VALUES + 2 * width], table, operation),
        unfit=unfit,
    )


def batch(
    columns: Sequence[Sequence[Any]], table: SourceTable, operation: np.ndarray | None = None
) -> tuple[pa.RecordBatch, dict[int, str]]:
    """Return rows as Arrow, and why which of them do not fit; of a deletion only the key has to."""
    arrays = []
    unfit: dict[int, str] = {}
    for values, column in zip(columns, table.columns, strict=True):
        array, reasons = decoded(values, column)
        arrays.append(array)
        if column.name in table.key:
            reasons |= _without_key(array, column.name, reasons)
        elif operation is not None:
            reasons = {row: why for row, why in reasons.items() if operation[row] != DELETE}
        unfit |= {row: why for row, why in reasons.items() if row not in unfit}
    return pa.RecordBatch.from_arrays(arrays, schema=table.schema), unfit


def _without_key(array: pa.Array, name: str, known: Mapping[int, str]) -> dict[int, str]:
    if not array.null_count:
        return {}
    nulls = np.flatnonzero(array.is_null().to_numpy(zero_copy_only=False))
    return {int(row): f'column "{name}" of the key is null' for row in nulls if int(row) not in known}


def _before(
    after: pa.RecordBatch, columns: Sequence[Sequence[Any]], table: SourceTable, operation: np.ndarray
) -> pa.RecordBatch | None:
    """Return the rows as they were: of an update what the outbox has, of a deletion the row itself."""
    updated, deleted = operation == UPDATE, operation == DELETE
    if not (updated | deleted).any():
        return None
    known, gone = pa.array(updated), pa.array(deleted)
    arrays = []
    for number, column in enumerate(table.columns):
        old = decoded(columns[number], column)[0]
        nothing = pa.scalar(None, column.type)
        other = pc.if_else(gone, after.column(number), nothing)
        arrays.append(pc.if_else(known, old, other))
    return pa.RecordBatch.from_arrays(arrays, schema=table.schema)
