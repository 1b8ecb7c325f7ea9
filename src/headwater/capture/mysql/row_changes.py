"""Rows of the binlog's events, of one table, become its changes.

The package that reads the binlog makes a dict of every row, in Python, and rows are told apart here while
they are dicts: its speed is that of a capture of MySQL. From there on columns are converted at once.

Invariant: a change that gives a row another key is two, the deletion first; all others are one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from headwater.capture.change import DELETE, INSERT, UPDATE, TableChanges, Transactions
from headwater.capture.mysql.catalog import MySqlTable
from headwater.capture.mysql.column_types import MySqlColumn
from headwater.capture.mysql.values import ConvertedColumn, from_binlog

_OUT_OF_RANGE: Final = "out of "
_EMPTY_SET: Final = "empty set"
Values = Mapping[str, Any]


class LoggedRow(NamedTuple):
    """A row as the package hands it out."""

    values: Values
    missing: Mapping[str, str]
    """Why a value is None, by the names of columns."""


_UNKNOWN: Final = LoggedRow({}, {})


class RowRun:
    """Changes of a table in the order of the binlog."""

    def __init__(self, table: MySqlTable):
        self.table = table
        self._operation: list[int] = []
        self._transaction: list[int] = []
        self._index: list[int] = []
        self._rows: list[LoggedRow] = []
        self._before: list[LoggedRow] = []

    def add(self, operation: int, rows: Sequence[Mapping[str, Any]], transaction: int, index: int) -> None:
        """Add the rows of an event, the first of which has a number in its transaction."""
        for number, row in enumerate(rows, index):
            if operation == UPDATE:
                before = LoggedRow(row["before_values"], row["before_none_sources"])
                self._update(number, before, LoggedRow(row["after_values"], row["after_none_sources"]))
            else:
                found = LoggedRow(row["values"], row["none_sources"])
                self._append(operation, number, found, found if operation == DELETE else _UNKNOWN)
        self._transaction += [transaction] * (len(self._operation) - len(self._transaction))

    def changes(self, transactions: Transactions) -> TableChanges:
        """Return them as Arrow."""
        rows, unfit = self._batch(self._rows)
        told = any(each is not _UNKNOWN for each in self._before)
        return TableChanges(
            table=self.table.table,
            operation=np.array(self._operation, np.int8),
            rows=rows,
            transactions=transactions,
            transaction=np.array(self._transaction, np.int64),
            index=np.array(self._index, np.int64),
            before=self._batch(self._before)[0] if told else None,
            unfit=unfit,
        )

    def _update(self, number: int, before: LoggedRow, after: LoggedRow) -> None:
        if any(before.values[name] != after.values[name] for name in self.table.table.key):
            self._append(DELETE, number, before, before)
            self._append(INSERT, number, after, _UNKNOWN)
        else:
            self._append(UPDATE, number, after, before)

    def _append(self, operation: int, number: int, row: LoggedRow, before: LoggedRow) -> None:
        self._operation.append(operation)
        self._index.append(number)
        self._rows.append(row)
        self._before.append(before)

    def _batch(self, rows: Sequence[LoggedRow]) -> tuple[pa.RecordBatch, dict[int, str]]:
        converted = [_column(each, rows) for each in self.table.columns]
        batch = pa.RecordBatch.from_arrays([each.array for each in converted], schema=self.table.schema)
        return batch, reasons(self.table, converted)


def reasons(table: MySqlTable, columns: Sequence[ConvertedColumn]) -> dict[int, str]:
    """Return why rows do not fit, by row: the first column, and its value."""
    found: dict[int, str] = {}
    for column, converted in zip(table.columns, columns, strict=True):
        for row, value in converted.unfit.items():
            found.setdefault(row, f'column "{column.name}" cannot hold {value}')
    return found


def _column(column: MySqlColumn, rows: Sequence[LoggedRow]) -> ConvertedColumn:
    name = column.name
    values = [row.values.get(name) for row in rows]
    if column.kind == "set":
        values = [
            () if row.missing.get(name) == _EMPTY_SET else each
            for row, each in zip(rows, values, strict=True)
        ]
    wrong: list[int] = []
    if column.kind in ("date", "datetime"):
        wrong = [at for at, row in enumerate(rows) if row.missing.get(name, "").startswith(_OUT_OF_RANGE)]
    return from_binlog(column, values, wrong)
