"""Which views a SQLite store has, in which versions, and how far each has got.

Invariant: at most one version of a view is published, and that is the one readers see.
"""

from __future__ import annotations

import json
import sqlite3
from functools import lru_cache
from typing import Any

from headwater import schema as schemas
from headwater.errors import UsageError
from headwater.values.keyed import KeyedSchema
from headwater.views import view_version
from headwater.views.sqlite.tables import Tables
from headwater.views.view_version import declared, positions


class StoredVersion(view_version.ViewVersion):
    """One version of a view as the catalog has it."""

    @property
    def tables(self) -> Tables:
        """The version's tables."""
        return _tables(self.id, self.name, self.columns, self.key)


def find(db: sqlite3.Connection, name: str, version: int | None = None) -> StoredVersion:
    """Return a version of a view, the published one if none is named."""
    for entry in of(db, name):
        if entry.published if version is None else entry.version == version:
            return entry
    raise unknown(db, name, version)


def of(db: sqlite3.Connection, name: str) -> list[StoredVersion]:
    """Return every version of a view, oldest first."""
    rows = db.execute(
        "SELECT id, name, version, columns, key, published, batch, epoch, positions, clock, filled "
        "FROM views WHERE name = ? ORDER BY version",
        (name,),
    )
    return [_entry(*row) for row in rows.fetchall()]


def names(db: sqlite3.Connection) -> list[str]:
    """Return the names of all views."""
    return [name for (name,) in db.execute("SELECT DISTINCT name FROM views ORDER BY name")]


def unknown(db: sqlite3.Connection, name: str, version: int | None) -> UsageError:
    """Return the error for a view, or a version of one, that is not there."""
    return view_version.unknown(name, version, names(db), [entry.version for entry in of(db, name)])


def add(db: sqlite3.Connection, name: str, version: int, keyed: KeyedSchema) -> StoredVersion:
    """Make a version of a view; a view's first version is published at once."""
    first = not of(db, name)
    db.execute(
        "INSERT INTO views (name, version, columns, key, published) VALUES (?, ?, ?, ?, ?)",
        (name, version, schemas.ddl(keyed.schema), json.dumps(keyed.key), first),
    )
    entry = find(db, name, version)
    entry.tables.create(db, entry.first)
    return entry


def publish(db: sqlite3.Connection, version: StoredVersion) -> None:
    """Let readers see a version instead of the one before."""
    db.execute("UPDATE views SET published = 0 WHERE name = ? AND published", (version.name,))
    db.execute("UPDATE views SET published = 1 WHERE id = ?", (version.id,))


def remove(db: sqlite3.Connection, version: StoredVersion) -> None:
    """Forget a version and what it holds."""
    version.tables.drop(db)
    db.execute("DELETE FROM views WHERE id = ?", (version.id,))


@lru_cache(maxsize=1024)
def _entry(
    id: int, name: str, version: int, columns: str, key: str, published: int, *reached: Any
) -> StoredVersion:
    batch, epoch, read_up_to, watermark, filled = reached
    progress = (batch, epoch, positions(read_up_to), watermark, bool(filled))
    return StoredVersion(id, name, version, columns, tuple(json.loads(key)), bool(published), *progress)


@lru_cache(maxsize=256)
def _tables(id: int, name: str, columns: str, key: tuple[str, ...]) -> Tables:
    return Tables(id, declared(name, columns, key))
