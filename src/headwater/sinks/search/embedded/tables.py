"""The tables of an embedded index, and the SQL that works on them.

The rows lie in one table, numbered; SQLite's full-text search (FTS5) has their words beside it and reads the
rows from there. Columns have names of our own, so that none is a word that FTS5 keeps for itself.
Invariant: the words in the index are those of the rows, for each statement that changes one has its
counterpart in the same transaction.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from headwater import schema as schemas
from headwater.errors import SinkRefused
from headwater.sinks.search.declaration import SearchSchema, declare_search
from headwater.stores.sqlite import values
from headwater.stores.sqlite.connection import FileKind

_PROGRESS = """
CREATE TABLE IF NOT EXISTS search (
    version INTEGER PRIMARY KEY, published INTEGER NOT NULL,
    columns TEXT NOT NULL, key TEXT NOT NULL, text TEXT NOT NULL,
    batch INTEGER NOT NULL DEFAULT -1, epoch INTEGER NOT NULL DEFAULT 0,
    positions TEXT NOT NULL DEFAULT '', clock INTEGER, filled INTEGER NOT NULL DEFAULT 0
);
"""
KIND = FileKind("search index", 0x68777369, 2, _PROGRESS, "delete the directory, and compute the node anew")


def file_of(directory: Path) -> Path:
    """Return the file of an index."""
    return directory / "index.db"


@dataclass(frozen=True)
class SearchProgress:
    """How far an index has got, and what it holds."""

    columns: str
    key: str
    text: str
    batch: int = -1
    epoch: int = 0
    filled: bool = False
    version: int = 1

    def schema(self, what: str) -> SearchSchema:
        """Return what it was declared to hold."""
        names = schemas.parse(self.columns).names
        key, text = (tuple(names[int(at)] for at in each.split(",")) for each in (self.key, self.text))
        return declare_search(what, self.columns, key, text)


def progress(db: sqlite3.Connection, version: int | None = None) -> SearchProgress | None:
    """Return how far a version has got, the published one if none is named; None where it is not there."""
    row = db.execute(
        "SELECT columns, key, text, batch, epoch, filled, version FROM search "
        "WHERE CASE WHEN ?1 IS NULL THEN published ELSE version = ?1 END",
        (version,),
    ).fetchone()
    return None if row is None else SearchProgress(*row)


def publish(db: sqlite3.Connection, version: int) -> None:
    """Let readers see a version, and remove the others."""
    db.execute("UPDATE search SET published = (version = ?)", (version,))
    drop_unpublished(db)


def drop_unpublished(db: sqlite3.Connection) -> None:
    """Remove every version but the one that readers see."""
    for (number,) in db.execute("SELECT version FROM search WHERE NOT published").fetchall():
        for table in ("words", "rows"):
            db.execute(f"DROP TABLE {_named(table, number)}")
        db.execute("DELETE FROM search WHERE version = ?", (number,))


def _named(table: str, version: int) -> str:
    return table if version == 1 else f"{table}_{version}"


@dataclass(frozen=True)
class SearchTables:
    """The rows and the words of an index."""

    declared: SearchSchema
    version: int = 1

    @property
    def rows(self) -> str:
        """The table of the rows."""
        return _named("rows", self.version)

    @property
    def words(self) -> str:
        """The table of their words."""
        return _named("words", self.version)

    @cached_property
    def names(self) -> dict[str, str]:
        """The name of each column in the tables."""
        return {name: f"c{number}" for number, name in enumerate(self.declared.schema.names)}

    @cached_property
    def key(self) -> list[str]:
        """The names of the key columns."""
        return [self.names[name] for name in self.declared.key]

    @cached_property
    def text(self) -> list[str]:
        """The names of the columns that are searched."""
        return [self.names[name] for name in self.declared.text]

    @cached_property
    def columns(self) -> list[str]:
        """The names of all columns."""
        return list(self.names.values())

    @cached_property
    def new(self) -> SearchProgress:
        """How far an index is that holds nothing yet."""
        at = self.declared.schema.names.index
        key, text = (
            ",".join(str(at(name)) for name in each) for each in (self.declared.key, self.declared.text)
        )
        return SearchProgress(schemas.ddl(self.declared.schema), key, text, version=self.version)

    @cached_property
    def definitions(self) -> dict[str, str]:
        """How each table is made; SQLite keeps the text, by which it is recognised."""
        columns = [
            f"{name} {values.sql_type(field)}"
            for name, field in zip(self.columns, self.declared.schema, strict=True)
        ]
        return {
            self.rows: f"CREATE TABLE {self.rows} (number INTEGER PRIMARY KEY, {', '.join(columns)}, "
            f"UNIQUE ({', '.join(self.key)}))",
            self.words: f"CREATE VIRTUAL TABLE {self.words} USING fts5("
            f"{', '.join(self.text)}, content='{self.rows}', "
            "content_rowid='number', tokenize='unicode61 remove_diacritics 2')",
        }

    def create(self, db: sqlite3.Connection) -> None:
        """Make the tables of a new index."""
        for statement in self.definitions.values():
            db.execute(statement)
        new = self.new
        db.execute(
            "INSERT INTO search (version, published, columns, key, text) "
            "VALUES (?, NOT EXISTS (SELECT 1 FROM search), ?, ?, ?)",
            (self.version, new.columns, new.key, new.text),
        )

    def check(self, db: sqlite3.Connection, filled: bool) -> None:
        """Refuse tables that are gone, were emptied, or are others than were made."""
        for table, definition in self.definitions.items():
            found = db.execute("SELECT sql FROM sqlite_master WHERE name = ?", (table,)).fetchone()
            if found != (definition,):
                raise self._missing(f'table "{table}" is gone, or is no longer the one that was made')
        if filled and not self.any(db):
            raise self._missing("it is empty, though it had rows")

    def any(self, db: sqlite3.Connection) -> bool:
        """Tell whether there is a row."""
        return bool(db.execute(f"SELECT EXISTS (SELECT 1 FROM {self.rows})").fetchone()[0])  # noqa: S608

    def prepare(self, db: sqlite3.Connection) -> None:
        """Make the writer's temporary table."""
        db.execute(f"CREATE TEMP TABLE IF NOT EXISTS stage ({', '.join(self.columns)}, deleted INTEGER)")

    def _missing(self, detail: str) -> SinkRefused:
        return SinkRefused(
            f"{self.declared.what} has lost what it held",
            detail=detail,
            hint="restore the directory from a backup; or delete it, and compute the node anew",
        )

    # Statements of a commit: all names are of our own

    @cached_property
    def put(self) -> str:
        """Stage a row."""
        marks = ", ".join("?" * (len(self.columns) + 1))
        return f"INSERT INTO stage VALUES ({marks})"  # noqa: S608

    @cached_property
    def skip_same(self) -> str:
        """Forget staged rows that change nothing."""
        ours, theirs = (", ".join(f"{table}.{name}" for name in self.columns) for table in ("stage", "r"))
        return (
            f"DELETE FROM stage WHERE NOT deleted AND EXISTS "  # noqa: S608
            f"(SELECT 1 FROM {self.rows} r WHERE {self._joined('stage')} AND ({ours}) IS ({theirs}))"
        )

    @cached_property
    def forget_words(self) -> str:
        """Remove the words of the rows that are staged; FTS5 wants the values by which it has them."""
        words = ", ".join(self.text)
        return (
            f"INSERT INTO {self.words} ({self.words}, rowid, {words}) "  # noqa: S608
            f"SELECT 'delete', r.number, {self._of_rows()} "
            f"FROM stage s JOIN {self.rows} r ON {self._joined('s')}"
        )

    @cached_property
    def upsert(self) -> str:
        """Put the staged rows in their places."""
        names = ", ".join(self.columns)
        assignments = ", ".join(f"{name} = excluded.{name}" for name in self.columns)
        return (
            f"INSERT INTO {self.rows} ({names}) SELECT {names} FROM stage WHERE NOT deleted "  # noqa: S608
            f"ON CONFLICT ({', '.join(self.key)}) DO UPDATE SET {assignments}"
        )

    @cached_property
    def delete(self) -> str:
        """Remove the rows that are staged as deleted."""
        key = ", ".join(self.key)
        return (
            f"DELETE FROM {self.rows} "  # noqa: S608
            f"WHERE ({key}) IN (SELECT {key} FROM stage WHERE deleted)"
        )

    @cached_property
    def add_words(self) -> str:
        """Add the words of the rows that were staged."""
        return (
            f"INSERT INTO {self.words} (rowid, {', '.join(self.text)}) "  # noqa: S608
            f"SELECT r.number, {self._of_rows()} FROM stage s JOIN {self.rows} r ON {self._joined('s')}"
        )

    @cached_property
    def search(self) -> str:
        """Find rows; takes what FTS5 is to look for, and how many."""
        columns = ", ".join(f"r.{name}" for name in self.columns)
        return (
            f"SELECT {columns}, -found.score FROM "  # noqa: S608
            f"(SELECT rowid AS number, rank AS score FROM {self.words} "
            f"WHERE {self.words} MATCH ? ORDER BY rank LIMIT ?) found JOIN {self.rows} r USING (number) "
            "ORDER BY found.score, r.number"
        )

    @cached_property
    def count(self) -> str:
        """Count the rows."""
        return f"SELECT count(*) FROM {self.rows}"  # noqa: S608

    @cached_property
    def all(self) -> str:
        """Return every row."""
        return f"SELECT {', '.join(self.columns)} FROM {self.rows}"  # noqa: S608

    def _joined(self, stage: str) -> str:
        return " AND ".join(f"r.{name} = {stage}.{name}" for name in self.key)

    def _of_rows(self) -> str:
        return ", ".join(f"r.{name}" for name in self.text)
