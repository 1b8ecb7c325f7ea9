"""Which tables are kept in a database, in which versions, and how far each has got.

The published version of a view has the view's own name, so that anyone can select from it; the
others are named with ``@`` and their number, which no view's name has. Invariant: a version's name
and whether it is published change in one transaction, by whoever holds the lock on its row.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import psycopg
from psycopg.sql import SQL, Composable, Identifier

from headwater import schema as schemas
from headwater.sinks.keyed import Keyed
from headwater.sinks.postgres.statements import Statements
from headwater.sinks.views import entry
from headwater.sinks.views.entry import declared, first_change, positions
from headwater.sinks.views.query import arrangement

_ALONE = SQL("SELECT pg_advisory_xact_lock(5277655813324800)")
"""Taken while tables are made: two sessions that make one table at once get an error."""
_TABLE = SQL(
    "CREATE TABLE IF NOT EXISTS headwater_sinks ("
    "id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name TEXT NOT NULL, version INTEGER NOT NULL, "
    "columns TEXT NOT NULL, key TEXT NOT NULL, published BOOLEAN NOT NULL, "
    "batch BIGINT NOT NULL DEFAULT -1, epoch BIGINT NOT NULL DEFAULT 0, "
    "positions TEXT NOT NULL DEFAULT '', clock BIGINT, changes BIGINT NOT NULL, UNIQUE (name, version))"
)
_ONE = SQL(
    "CREATE UNIQUE INDEX IF NOT EXISTS headwater_sinks_published ON headwater_sinks (name) WHERE published"
)
_OF = SQL(
    "SELECT id, name, version, columns, key, published, batch, epoch, positions, clock, changes "
    "FROM headwater_sinks WHERE name = %s ORDER BY version"
)
_LOCKED = SQL("SELECT id FROM headwater_sinks WHERE name = %s ORDER BY id FOR UPDATE")
_ARRANGED = SQL(
    "SELECT c.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid "
    "WHERE i.indrelid = %s::regclass AND c.relname LIKE %s"
)
_ADD = SQL(
    "INSERT INTO headwater_sinks (name, version, columns, key, published, changes) "
    "VALUES (%s, %s, %s, %s, %s, %s)"
)


@dataclass(frozen=True)
class Entry(entry.Entry):
    """One version of a table as the catalog has it."""

    changes: int
    """The number of its newest change."""

    @property
    def table(self) -> str:
        """The name that its table has now."""
        return self.name if self.published else f"{self.name}@{self.version}"

    @property
    def sql(self) -> Statements:
        """The statements for its tables, as they are named now."""
        return _statements(self.table, self.name, self.columns, self.key)


def prepare(db: psycopg.Connection) -> None:
    """Make the catalog if it is not there, and keep others from making tables until the commit."""
    db.execute(_ALONE)
    db.execute(_TABLE)
    db.execute(_ONE)


def find(db: psycopg.Connection, name: str, version: int | None = None) -> Entry:
    """Return a version of a table, the published one if none is named."""
    try:
        found = of(db, name)
    except psycopg.errors.UndefinedTable:  # nothing was ever kept here
        raise entry.unknown(name, version, [], []) from None
    for each in found:
        if each.published if version is None else each.version == version:
            return each
    raise entry.unknown(name, version, names(db), [each.version for each in found])


def of(db: psycopg.Connection, name: str) -> list[Entry]:
    """Return every version of a table, oldest first."""
    return [_entry(*row) for row in db.execute(_OF, (name,)).fetchall()]


def names(db: psycopg.Connection) -> list[str]:
    """Return the names of all that is kept in the database."""
    there = exists(db, Identifier("headwater_sinks"))
    found = db.execute("SELECT DISTINCT name FROM headwater_sinks") if there else ()
    return sorted(name for (name,) in found)


def add(db: psycopg.Connection, name: str, version: int, keyed: Keyed) -> Entry:
    """Note a version; the first one of a name is published at once."""
    told = (schemas.ddl(keyed.schema), json.dumps(keyed.key), not of(db, name), first_change(version))
    db.execute(_ADD, (name, version, *told))
    return find(db, name, version)


def lock(db: psycopg.Connection, name: str) -> None:
    """Wait for the commits to all versions of a table, and keep others from beginning."""
    db.execute(_LOCKED, (name,))


def publish(db: psycopg.Connection, name: str, version: int) -> None:
    """Let a version and the published one change places."""
    lock(db, name)
    new = find(db, name, version)
    for old in [each for each in of(db, name) if each.published and not new.published]:
        _rename(db, old.sql, f"{name}@{old.version}")
        _grant(db, old, new)
    if not new.published:
        _rename(db, new.sql, name)
        db.execute("UPDATE headwater_sinks SET published = false WHERE name = %s AND published", (name,))
        db.execute("UPDATE headwater_sinks SET published = true WHERE id = %s", (new.id,))


def arrange(db: psycopg.Connection, version: Entry, order: str | None) -> None:
    """Make the index for the order of a column, or none, and no other."""
    columns, wanted = arrangement(version.keyed, order), _index(version, order)
    known = _indexes(db, version)
    for name in known:
        if name != wanted:
            db.execute(SQL("DROP INDEX {}").format(Identifier(*version.table.split(".")[:-1], name)))
    if wanted and wanted not in known:
        db.execute(version.sql.arrange(wanted, columns))


def is_arranged(db: psycopg.Connection, version: Entry, order: str | None) -> bool:
    """Tell whether there is the index for the order of a column, and no other."""
    wanted = _index(version, order)
    return _indexes(db, version) == ([wanted] if wanted else [])


def _index(version: Entry, order: str | None) -> str | None:
    columns = arrangement(version.keyed, order)
    digest = hashlib.sha256(json.dumps(columns).encode()).hexdigest()[:8]
    return f"headwater_order_{version.id}_{digest}" if columns else None


def _indexes(db: psycopg.Connection, version: Entry) -> list[str]:
    table, like = version.sql.target.as_string(db), f"headwater\\_order\\_{version.id}\\_%"
    return [name for (name,) in db.execute(_ARRANGED, (table, like))]


def remove(db: psycopg.Connection, version: Entry) -> None:
    """Forget a version and what it holds."""
    for table in (version.sql.changes, version.sql.target):  # the changes have the other's row type
        db.execute(SQL("DROP TABLE IF EXISTS {}").format(table))
    db.execute("DELETE FROM headwater_sinks WHERE id = %s", (version.id,))


def exists(db: psycopg.Connection, table: Composable) -> bool:
    """Tell whether there is a table of that name."""
    return db.execute("SELECT to_regclass(%s) IS NOT NULL", (table.as_string(db),)).fetchone() == (True,)


def _rename(db: psycopg.Connection, sql: Statements, to: str) -> None:
    last = to.split(".")[-1]
    for table, name in ((sql.changes, f"{last}_changes"), (sql.target, last)):
        db.execute(SQL("ALTER TABLE IF EXISTS {} RENAME TO {}").format(table, Identifier(name)))


def _grant(db: psycopg.Connection, old: Entry, new: Entry) -> None:
    """Let those read the new version who may read the old one, which has been renamed by now."""
    before = Statements(f"{old.name}@{old.version}", old.keyed)
    for source, target in ((before.target, new.sql.target), (before.changes, new.sql.changes)):
        found = db.execute(
            "SELECT DISTINCT grantee, CASE grantee WHEN 0 THEN '' ELSE pg_get_userbyid(grantee) END "
            "FROM pg_class, aclexplode(relacl) "
            "WHERE pg_class.oid = to_regclass(%s) AND privilege_type = 'SELECT' AND grantee <> relowner",
            (source.as_string(db),),
        ).fetchall()
        for number, role in found:
            who: Composable = Identifier(role) if number else SQL("PUBLIC")
            db.execute(SQL("GRANT SELECT ON {} TO {}").format(target, who))


def _entry(id: int, name: str, version: int, columns: str, key: str, published: bool, *more: Any) -> Entry:
    batch, epoch, places, clock, changes = more
    told = (batch, epoch, positions(places), clock, changes)
    return Entry(id, name, version, columns, tuple(json.loads(key)), published, *told)


@lru_cache(maxsize=256)
def _statements(table: str, name: str, columns: str, key: tuple[str, ...]) -> Statements:
    return Statements(table, declared(name, columns, key))
