"""The tables of a database: columns and keys, as ``information_schema`` has them now.

Invariant: only columns whose values are read here are told; a table whose key has another one has no key.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

import pyarrow as pa

from headwater.capture.change import SourceTable
from headwater.capture.mysql.column_types import MySqlColumn, mysql_column
from headwater.capture.mysql.session import MySqlConnection

_NAMES: Final = (
    "COLUMN_NAME",
    "DATA_TYPE",
    "COLUMN_TYPE",
    "IS_NULLABLE",
    "EXTRA",
    "NUMERIC_PRECISION",
    "NUMERIC_SCALE",
    "DATETIME_PRECISION",
    "CHARACTER_OCTET_LENGTH",
    "CHARACTER_SET_NAME",
)
_COLUMNS: Final = (
    f"SELECT c.TABLE_NAME, {', '.join('c.' + name for name in _NAMES)}"  # noqa: S608  # names of its own
    " FROM information_schema.COLUMNS c JOIN information_schema.TABLES t"
    " ON t.TABLE_SCHEMA = c.TABLE_SCHEMA AND t.TABLE_NAME = c.TABLE_NAME"
    " WHERE c.TABLE_SCHEMA = %s AND t.TABLE_TYPE IN ('BASE TABLE', 'SYSTEM VERSIONED')"
    " ORDER BY c.TABLE_NAME, c.ORDINAL_POSITION"
)
_KEYS: Final = (
    "SELECT TABLE_NAME, COLUMN_NAME FROM information_schema.STATISTICS"
    " WHERE TABLE_SCHEMA = %s AND INDEX_NAME = 'PRIMARY' ORDER BY TABLE_NAME, SEQ_IN_INDEX"
)


@dataclass(frozen=True)
class MySqlTable:
    """A table with what makes the values of its columns."""

    table: SourceTable
    columns: tuple[MySqlColumn, ...]
    unread: frozenset[str] = frozenset()
    """The names of columns whose values are not read here: they are left out."""

    @property
    def schema(self) -> pa.Schema:
        """The columns of rows, any of which may be null: a value that does not fit is."""
        return pa.schema([pa.field(each.name, each.type) for each in self.columns])


def tables(db: MySqlConnection, database: str) -> dict[str, MySqlTable]:
    """Return every table of a database, by name."""
    keys: dict[str, list[str]] = {}
    for table, column in db.rows(_KEYS, (database,)):
        keys.setdefault(table, []).append(column)
    rows = groupby(db.rows(_COLUMNS, (database,)), itemgetter(0))
    described = {name: [dict(zip(_NAMES, row[1:], strict=True)) for row in found] for name, found in rows}
    return {name: _table(name, found, keys.get(name, [])) for name, found in described.items()}


def _table(name: str, rows: list[dict[str, Any]], key: list[str]) -> MySqlTable:
    found = [mysql_column(row) for row in rows]
    columns = tuple(each for each in found if each is not None)
    unread = frozenset(str(row["COLUMN_NAME"]) for row in rows) - {each.name for each in columns}
    return made(name, columns, () if unread.intersection(key) else tuple(key), unread)


def made(
    name: str, columns: tuple[MySqlColumn, ...], key: tuple[str, ...], unread: frozenset[str] = frozenset()
) -> MySqlTable:
    """Return a table of columns and a key."""
    return MySqlTable(SourceTable(name, tuple(each.column for each in columns), key), columns, unread)
