"""The tables of one version of a view, and the SQL that works on them.

A version has its rows, clustered by key, and its changes, numbered. A batch is staged in a table
of the writer's own, compared with the rows there, and put in their place. Invariant: values reach
SQLite as bound parameters only, and every name in a statement is quoted.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from headwater.errors import SinkRefused
from headwater.record import DELETED
from headwater.stores.sqlite import values
from headwater.values.keyed import KeyedSchema
from headwater.views.changes import DELETE, INSERT, UPDATE


def quoted(name: str) -> str:
    """Return a name as SQL takes it."""
    return '"' + name.replace('"', '""') + '"'


@dataclass(frozen=True)
class Tables:
    """The rows and the changes of one version of a view."""

    id: int
    keyed: KeyedSchema

    @property
    def rows(self) -> str:
        """The name of the table of rows."""
        return f"rows_{self.id}"

    @property
    def changes(self) -> str:
        """The name of the table of changes."""
        return f"changes_{self.id}"

    @property
    def stage(self) -> str:
        """The name of the writer's temporary table."""
        return f"stage_{self.id}"

    @cached_property
    def fields(self) -> list[pa.Field]:
        """The columns as the tables have them: the key first."""
        return [*self.keyed.key_fields, *self.keyed.value_fields]

    @property
    def key(self) -> list[str]:
        """The quoted names of the key columns."""
        return [quoted(name) for name in self.keyed.key]

    @property
    def others(self) -> list[str]:
        """The quoted names of the other columns."""
        return [quoted(field.name) for field in self.keyed.value_fields]

    @cached_property
    def select_one(self) -> str:
        """The statement that returns the row of a key, its columns in the schema's order."""
        columns = ", ".join(quoted(name) for name in self.keyed.schema.names)
        where = " AND ".join(f"{name} = ?" for name in self.key)
        return f"SELECT {columns} FROM {self.rows} WHERE {where}"  # noqa: S608

    @cached_property
    def change_columns(self) -> list[str]:
        """The columns of the table of changes after number, batch and kind: key, old values, new ones."""
        count, rest = range(len(self.key)), range(len(self.others))
        return [f"k{n}" for n in count] + [f"o{n}" for n in rest] + [f"n{n}" for n in rest]

    @cached_property
    def definitions(self) -> dict[str, str]:
        """How each table is made; SQLite keeps the text, by which it is recognised."""
        columns = [f"{quoted(f.name)} {values.sql_type(f)}{self._strict(f)}" for f in self.fields]
        primary = f"PRIMARY KEY ({', '.join(self.key)})"
        change_columns = ", ".join(self.change_columns)  # without types, so that values are kept as they come
        return {
            self.rows: f"CREATE TABLE {self.rows} ({', '.join(columns)}, {primary}) WITHOUT ROWID",
            self.changes: f"CREATE TABLE {self.changes} "
            f"(number INTEGER PRIMARY KEY AUTOINCREMENT, batch INTEGER, kind INTEGER, {change_columns})",
        }

    def create(self, db: sqlite3.Connection, first: int) -> None:
        """Make the tables; the first change will have the number after ``first``."""
        for statement in self.definitions.values():
            db.execute(statement)
        db.execute("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", (self.changes, first))

    def check(self, db: sqlite3.Connection, filled: bool) -> None:
        """Refuse tables that are gone, were emptied, or are others than were made."""
        for table in self.definitions:
            if not self._is_ours(db, table):
                raise self._missing(table, "is gone")
        if filled and not self.any(db):
            raise self._missing(self.rows, "is empty")

    def any(self, db: sqlite3.Connection) -> bool:
        """Tell whether there is a row."""
        return bool(db.execute(f"SELECT EXISTS (SELECT 1 FROM {self.rows})").fetchone()[0])  # noqa: S608

    def set_index(self, db: sqlite3.Connection, columns: list[str]) -> None:
        """Make the index of these columns, or none, and no other."""
        index = f"order_{self.id}"
        if [name for _, _, name in db.execute(f"PRAGMA index_info({index})")] == columns:
            return
        if db.execute(
            "SELECT 1 FROM sqlite_master WHERE (name, tbl_name) = (?, ?)", (index, self.rows)
        ).fetchone():
            db.execute(f"DROP INDEX {index}")
        if columns:
            db.execute(f"CREATE INDEX {index} ON {self.rows} ({', '.join(map(quoted, columns))})")

    def drop(self, db: sqlite3.Connection) -> None:
        """Remove the tables; one that was put in the place of ours by somebody else stays."""
        for table in self.definitions:
            if self._is_ours(db, table):
                db.execute(f"DROP TABLE {table}")

    def _is_ours(self, db: sqlite3.Connection, table: str) -> bool:
        row = db.execute("SELECT sql FROM sqlite_master WHERE type = 'table' AND name = ?", (table,))
        return bool(row.fetchone() == (self.definitions[table],))

    def _missing(self, table: str, how: str) -> SinkRefused:
        return SinkRefused(
            f'table "{table}" of {self.keyed.what} {how}, or is no longer the one that was made',
            hint="restore the file from a backup; or run `headwater rebuild` to compute the view anew",
        )

    def prepare(self, db: sqlite3.Connection) -> None:
        """Make the writer's temporary table."""
        columns = ", ".join(f"{quoted(f.name)} {values.sql_type(f)}" for f in self.fields)
        db.execute(f"CREATE TEMP TABLE IF NOT EXISTS {self.stage} ({columns}, {DELETED} INTEGER)")

    def _strict(self, field: pa.Field) -> str:
        return " NOT NULL" if field.name in self.keyed.key or not field.nullable else ""

    # Statements of a commit

    @cached_property
    def put(self) -> str:
        """Stage a row."""
        marks = ", ".join("?" * (len(self.fields) + 1))
        return f"INSERT INTO {self.stage} VALUES ({marks})"  # noqa: S608  # names of our own

    @cached_property
    def save_changes(self) -> str:
        """Save what the staged rows change; takes the batch number."""
        new, old = _of("s", [*self.key, *self.others]), _of("r", self.others)
        chosen = new[: len(self.key)] + old + new[len(self.key) :]
        missing = f"r.{self.key[0]} IS NULL"
        kind = f"CASE WHEN s.{DELETED} THEN {DELETE} WHEN {missing} THEN {INSERT} ELSE {UPDATE} END"
        differs = f"{missing} OR {_differing('r', 's', self.others)}" if self.others else missing
        return (
            f"INSERT INTO {self.changes} (batch, kind, {', '.join(self.change_columns)}) "  # noqa: S608
            f"SELECT ?, {kind}, {', '.join(chosen)} FROM {self.stage} s "
            f"LEFT JOIN {self.rows} r ON {_equal('r', 's', self.key)} "
            f"WHERE CASE WHEN s.{DELETED} THEN NOT {missing} ELSE {differs} END"
        )

    @cached_property
    def upsert(self) -> str:
        """Put the staged rows in their places; a row that stays the same is not written."""
        names = ", ".join([*self.key, *self.others])
        assignments = ", ".join(f"{name} = excluded.{name}" for name in self.others)
        action = (
            f"UPDATE SET {assignments} WHERE {_differing(self.rows, 'excluded', self.others)}"
            if self.others
            else "NOTHING"
        )
        return (
            f"INSERT INTO {self.rows} ({names}) SELECT {names} FROM {self.stage} "  # noqa: S608
            f"WHERE NOT {DELETED} ON CONFLICT DO {action}"
        )

    @cached_property
    def delete(self) -> str:
        """Remove the rows that are staged as deleted."""
        key = ", ".join(self.key)
        chosen = f"SELECT {key} FROM {self.stage} WHERE {DELETED}"  # noqa: S608  # names of our own
        return f"DELETE FROM {self.rows} WHERE ({key}) IN ({chosen})"  # noqa: S608

    @cached_property
    def clear(self) -> str:
        """Empty the stage."""
        return f"DELETE FROM {self.stage}"  # noqa: S608  # a name of our own

    @cached_property
    def prune(self) -> str:
        """Forget changes up to and with a number."""
        return f"DELETE FROM {self.changes} WHERE number <= ?"  # noqa: S608  # a name of our own


def last_change(db: sqlite3.Connection, tables: Tables) -> int:
    """Return the number of the newest change, kept or not."""
    row = db.execute("SELECT seq FROM sqlite_sequence WHERE name = ?", (tables.changes,)).fetchone()
    return int(row[0])


def _of(table: str, names: Sequence[str]) -> list[str]:
    return [f"{table}.{name}" for name in names]


def _equal(one: str, other: str, names: Sequence[str]) -> str:
    return " AND ".join(f"{one}.{name} = {other}.{name}" for name in names)


def _differing(one: str, other: str, names: Sequence[str]) -> str:
    # Of two rows, not of a chain of columns: an expression may be no deeper than a thousand.
    return f"({', '.join(_of(one, names))}) IS NOT ({', '.join(_of(other, names))})"
