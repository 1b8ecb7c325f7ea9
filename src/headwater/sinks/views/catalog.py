"""Which views a store has, in which versions, and how far each has got.

Invariant: at most one version of a view is published, and that is the one readers see.
"""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa

from headwater import schema as schemas
from headwater.errors import UsageError, nearest
from headwater.log.position import Position
from headwater.sinks.keyed import Keyed
from headwater.sinks.views.tables import Tables

FIRST = 40
"""The changes of version n are numbered from ``(n - 1) << FIRST`` on, so no two versions share a number."""


@dataclass(frozen=True)
class Entry:
    """One version of a view as the catalog has it."""

    id: int
    name: str
    version: int
    columns: str
    key: tuple[str, ...]
    published: bool
    batch: int
    epoch: int
    positions: tuple[Position, ...]
    clock: int | None

    @property
    def tables(self) -> Tables:
        """The version's tables."""
        return _tables(self.id, self.name, self.columns, self.key)

    @property
    def first(self) -> int:
        """The number before that of the version's first change."""
        return (self.version - 1) << FIRST


def find(db: sqlite3.Connection, name: str, version: int | None = None) -> Entry:
    """Return a version of a view, the published one if none is named."""
    for entry in of(db, name):
        if entry.published if version is None else entry.version == version:
            return entry
    raise unknown(db, name, version)


def of(db: sqlite3.Connection, name: str) -> list[Entry]:
    """Return every version of a view, oldest first."""
    rows = db.execute(
        "SELECT id, name, version, columns, key, published, batch, epoch, positions, clock "
        "FROM views WHERE name = ? ORDER BY version",
        (name,),
    )
    return [_entry(*row) for row in rows.fetchall()]


def names(db: sqlite3.Connection) -> list[str]:
    """Return the names of all views."""
    return [name for (name,) in db.execute("SELECT DISTINCT name FROM views ORDER BY name")]


def unknown(db: sqlite3.Connection, name: str, version: int | None) -> UsageError:
    """Return the error for a view, or a version of one, that is not there."""
    known = names(db)
    if name not in known:
        listed = "views: " + ", ".join(known) if known else "the store has no views yet"
        return UsageError(f'no view "{name}"', hint=nearest(str(name), known) or listed)
    there = ", ".join(str(entry.version) for entry in of(db, name))
    if version is None:
        return UsageError(f'view "{name}" has no published version', hint=f"versions: {there}")
    return UsageError(f'view "{name}" has no version {version}', hint=f"versions: {there}")


def add(db: sqlite3.Connection, name: str, version: int, keyed: Keyed) -> Entry:
    """Make a version of a view; a view's first version is published at once."""
    first = not of(db, name)
    db.execute(
        "INSERT INTO views (name, version, columns, key, published) VALUES (?, ?, ?, ?, ?)",
        (name, version, schemas.ddl(keyed.schema), json.dumps(keyed.key), first),
    )
    entry = find(db, name, version)
    entry.tables.create(db, entry.first)
    return entry


def publish(db: sqlite3.Connection, entry: Entry) -> None:
    """Let readers see a version instead of the one before."""
    db.execute("UPDATE views SET published = 0 WHERE name = ? AND published", (entry.name,))
    db.execute("UPDATE views SET published = 1 WHERE id = ?", (entry.id,))


def remove(db: sqlite3.Connection, entry: Entry) -> None:
    """Forget a version and what it holds."""
    entry.tables.drop(db)
    db.execute("DELETE FROM views WHERE id = ?", (entry.id,))


def _entry(
    id: int, name: str, version: int, columns: str, key: str, published: int, *reached: object
) -> Entry:
    batch, epoch, positions, clock = reached
    places = tuple(Position.parse(text) for text in str(positions).split())
    return Entry(
        id, name, version, columns, tuple(json.loads(key)), bool(published),
        batch, epoch, places, clock,  # type: ignore[arg-type]  # as the table declares them
    )  # fmt: skip


@lru_cache(maxsize=256)
def _tables(id: int, name: str, columns: str, key: tuple[str, ...]) -> Tables:
    schema: pa.Schema = schemas.parse(columns)
    return Tables(id, Keyed(f'view "{name}"', schema, key))
