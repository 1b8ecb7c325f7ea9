"""The outbox: a table in the application's file into which its own statements write what they change.

One table for all captured ones, because a change then is one row appended at one place and its number is its
place in the order over all tables. Its columns for values have no type, so that whatever SQLite can store is
copied as it is: 64-bit numbers, floats to the bit, bytes, texts with zeros. An update has the old values
behind the new ones. Each form that a captured table has had has a number (``source``), by which its rows are
read.

Ids never come again without AUTOINCREMENT, which costs a second write per row and would leave a table
behind: the newest row is never removed. Invariant: a row of the outbox is never changed, and goes only when
it was confirmed; the one at a confirmed position stays, so that a reader who begins there is known to be
right.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from headwater.capture.change import SourceColumn, SourceTable
from headwater.capture.sqlite.column_types import arrow_type
from headwater.capture.sqlite.connection import Row, SqliteConnection
from headwater.capture.sqlite.object_names import ObjectNames, quoted
from headwater.capture.sqlite.position import OutboxPosition
from headwater.capture.sqlite.triggers import NOW, value_columns
from headwater.errors import SourceRefused

FORMAT = 1
MOST_COLUMNS = 990
"""A table of SQLite has 2,000 columns at most, and an update twice those of its table."""
_MARK = 0
"""The source of rows that tell of no change."""
_TRIMMED = 10_000
"""Rows that are removed at once: the application waits as long."""
_BLOCK_ROWS, _BLOCK_BYTES, _MOST_ROWS = 500, 32 << 20, 50_000

_PATIENCE = 0.5
"""Seconds to wait with trimming for the application: reading on is more urgent."""
_NUMBER = 4
"""About how many bytes a number takes."""


@dataclass(frozen=True)
class OutboxSource:
    """A captured table in one of its forms."""

    number: int
    table: SourceTable
    live: bool
    """Whether its triggers are at work."""


class Outbox:
    """The outbox of one capture."""

    def __init__(self, db: SqliteConnection, names: ObjectNames):
        self._db, self._names = db, names
        self._id: str | None = None

    def make(self) -> None:
        """Make an empty one, in place of any that is there."""
        names = self._names
        self.drop()
        self._db.execute(f"CREATE TABLE {names.about} (id TEXT NOT NULL, format INTEGER NOT NULL)")
        self._db.execute(
            f"CREATE TABLE {names.tables} (source INTEGER PRIMARY KEY, name TEXT NOT NULL,"
            " columns TEXT NOT NULL, ended INTEGER)"
        )
        self._db.execute(
            f"CREATE TABLE {names.outbox} (id INTEGER PRIMARY KEY, source INTEGER NOT NULL,"
            " operation INTEGER NOT NULL, at INTEGER NOT NULL)"
        )
        self._db.execute(f"CREATE TABLE {names.replaced} (source INTEGER NOT NULL)")
        self._db.execute(
            f"INSERT INTO {names.about} VALUES (?, ?)",  # noqa: S608  # ours, as all below
            secrets.token_hex(8),
            FORMAT,
        )
        self._db.execute(
            f"INSERT INTO {names.outbox} (source, operation, at) SELECT ?, 0, {NOW}",
            _MARK,
        )
        self._id = None

    def drop(self) -> None:
        """Remove everything that captures of this name have made."""
        prefix = self._names.prefix
        made = "SELECT type, name FROM sqlite_master WHERE substr(name, 1, ?) = ? AND type <> 'index'"
        found = self._db.rows(made, len(prefix), prefix)
        for kind, name in sorted(found, reverse=True):  # triggers first: they name the tables
            self._db.execute(f"DROP {kind} {quoted(name)}")

    # Positions

    def check(self, position: OutboxPosition) -> None:
        """Refuse a position of which the outbox does not know what comes next."""
        lost = self._why_lost(position)
        if lost:
            raise SourceRefused(
                f"{self._db.title} cannot be captured from where the capture was",
                detail=lost,
                hint="drop it (`headwater capture drop`) and begin it anew, with new snapshots",
            )

    def _why_lost(self, position: OutboxPosition) -> str | None:
        if not self._exists():
            return "its outbox is not there any more: it was dropped, or this is another database"
        if self._outbox_id() != position.outbox:
            return "its outbox was made anew since: changes before that are not known"
        first, last = self._bounds()
        if position.id > last:
            return f"it has come to change {last} only, not to {position.id}: restored, or a power loss?"
        if position.id < first:
            return f"change {position.id} is forgotten: the outbox begins with {first}"
        if self._time(position.id) != position.at:
            return f"change {position.id} is not the one it was: restored, or a power loss?"
        return None

    def end(self) -> OutboxPosition:
        """Return the position behind the newest change."""
        last = self._bounds()[1]
        return OutboxPosition(self._outbox_id(), last, self._time(last))

    def _exists(self) -> bool:
        name = self._names.prefix + "about"
        return (
            self._db.value("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", name) is not None
        )

    def _outbox_id(self) -> str:
        if self._id is None:
            row = self._db.rows(f"SELECT id, format FROM {self._names.about}")[0]  # noqa: S608
            if row[1] != FORMAT:
                raise SourceRefused(
                    f"the outbox in {self._db.title} was made by another version of Headwater",
                    detail=f"its format is {row[1]}, this one knows {FORMAT}",
                    hint="use that version, or drop the capture and begin it anew",
                )
            self._id = row[0]
        return self._id

    def _bounds(self) -> tuple[int, int]:
        first = self._db.value(f"SELECT min(id) FROM {self._names.outbox}")  # noqa: S608
        last = self._db.value(f"SELECT max(id) FROM {self._names.outbox}")  # noqa: S608
        return first, last

    def _time(self, id: int) -> int:
        return int(self._db.value(f"SELECT at FROM {self._names.outbox} WHERE id = ?", id))  # noqa: S608

    # Sources

    def sources(self) -> list[OutboxSource]:
        """Return the captured tables, in each form that changes may have."""
        rows = self._db.rows(f"SELECT source, name, columns, ended FROM {self._names.tables}")  # noqa: S608
        return [
            OutboxSource(number, _table(name, columns), ended is None)
            for number, name, columns, ended in rows
        ]

    def add_source(self, table: SourceTable) -> int:
        """Take in a table, or another form of one, and return its number."""
        if len(table.columns) > MOST_COLUMNS:
            raise SourceRefused(
                f'table "{table.name}" of {self._db.title} has over {MOST_COLUMNS} columns',
                hint="it cannot be captured: an update is kept with its old values, in one row",
            )
        self._widen(self._names.outbox, 2 * len(table.columns))
        self._widen(self._names.replaced, len(table.columns))
        self._db.execute(
            f"INSERT INTO {self._names.tables} (name, columns) VALUES (?, ?)",  # noqa: S608
            table.name,
            _described(table),
        )
        return int(self._db.value("SELECT last_insert_rowid()"))

    def end_source(self, number: int) -> None:
        """Remove the triggers of a source; its changes stay until they are confirmed."""
        for name in self.triggers(number):
            self._db.execute(f"DROP TRIGGER {quoted(name)}")
        last = self._bounds()[1]
        self._db.execute(f"UPDATE {self._names.tables} SET ended = ? WHERE source = ?", last, number)  # noqa: S608

    def triggers(self, number: int) -> dict[str, Row]:
        """Return the triggers of a source that are there: on which table each is, and its SQL."""
        prefix = self._names.trigger(number, "")
        made = "SELECT name, tbl_name, sql FROM sqlite_master WHERE type = 'trigger'"
        rows = self._db.rows(f"{made} AND substr(name, 1, ?) = ?", len(prefix), prefix)
        return {name: (table, sql) for name, table, sql in rows}

    def has_changes(self, number: int, since: int) -> bool:
        """Tell whether a source has changes behind an id."""
        query = f"SELECT 1 FROM {self._names.outbox} WHERE id > ? AND source = ? LIMIT 1"  # noqa: S608
        return self._db.value(query, since, number) is not None

    def _widen(self, table: str, count: int) -> None:
        there = {row[1] for row in self._db.rows(f"PRAGMA table_info({table})")}
        for name in value_columns(count):
            if name not in there:
                self._db.execute(f"ALTER TABLE {table} ADD COLUMN {name}")

    # Changes

    def read(self, after: int, until: int, values: int) -> list[Row]:
        """Return rows behind an id and up to another: id, source, operation, time, values; not too many."""
        columns = ", ".join(["id", "source", "operation", "at", *value_columns(values)])
        outbox = self._names.outbox
        query = f"SELECT {columns} FROM {outbox} WHERE id > ? AND id <= ? ORDER BY id"  # noqa: S608
        return self._db.readable(lambda: self._few(query, (after, until)))

    def _few(self, query: str, values: tuple[int, int]) -> list[Row]:
        rows: list[Row] = []
        size = 0
        blocks = self._db.blocks(query, values, _BLOCK_ROWS)
        for block in blocks:
            rows += block
            size += _size(block)
            if size > _BLOCK_BYTES or len(rows) >= _MOST_ROWS:
                blocks.close()
        return rows

    def trim(self, position: OutboxPosition) -> None:
        """Remove what comes before the change at a position, and what else is over."""
        outbox, first = self._names.outbox, self._bounds()[0]
        if position.id > first:
            self.check(position)
        for end in _steps(first, position.id):
            with self._db.transaction(_PATIENCE):
                self._db.execute(f"DELETE FROM {outbox} WHERE id < ?", end)  # noqa: S608
                self._db.execute(f"DELETE FROM {self._names.tables} WHERE ended <= ?", end)  # noqa: S608

    def retained(self) -> int:
        """Return about how many bytes the changes take, by their number and the size of the newest ones."""
        first, last = self._bounds()
        newest = f"SELECT * FROM {self._names.outbox} ORDER BY id DESC LIMIT 100"  # noqa: S608
        rows = self._db.readable(lambda: self._db.rows(newest))
        return (last - first + 1) * _size(rows) // len(rows)


def _steps(first: int, end: int) -> Iterator[int]:
    """Yield how far to trim in each transaction."""
    if end > first:
        yield from range(first + _TRIMMED, end, _TRIMMED)
        yield end


def _size(rows: Sequence[Row]) -> int:
    """Return about how many bytes rows take."""
    return sum(map(_column_size, zip(*rows, strict=True)))


def _column_size(values: Sequence[Any]) -> int:
    kinds = set(map(type, values)) - {type(None)}
    if kinds <= {str, bytes}:
        return sum(map(len, filter(None, values)))
    if not kinds & {str, bytes}:
        return len(values) * _NUMBER
    return sum(len(value) if isinstance(value, str | bytes) else _NUMBER for value in values)


def _described(table: SourceTable) -> str:
    columns = [[each.name, each.sql_type, each.nullable, each.generated] for each in table.columns]
    return json.dumps({"columns": columns, "key": table.key})


def _table(name: str, text: str) -> SourceTable:
    told: dict[str, Any] = json.loads(text)
    columns = (
        SourceColumn(column, arrow_type(declared), declared, nullable, generated)
        for column, declared, nullable, generated in told["columns"]
    )
    return SourceTable(name, tuple(columns), tuple(told["key"]))
