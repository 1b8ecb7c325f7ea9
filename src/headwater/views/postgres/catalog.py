"""Which tables are kept in a database, in which versions, and how far each has got.

Invariant: a version's name and whether it is published change in one transaction, by whoever holds
the lock on its row; a table ``headwater_sinks`` that is not ours is not touched.
"""

from __future__ import annotations

import json
from typing import Any

import psycopg
from psycopg.sql import SQL, Composable, Identifier

from headwater import schema as schemas
from headwater.errors import UsageError
from headwater.values.keyed import KeyedSchema
from headwater.views import view_version
from headwater.views.postgres import marks, tables
from headwater.views.postgres.table_version import TableVersion
from headwater.views.view_version import first_change, positions

_EXCLUSIVE = SQL("SELECT pg_advisory_xact_lock(5277655813324800)")
"""Taken while tables are made: two sessions that make one table at once get an error."""
_CATALOG = Identifier("headwater_sinks")
_MARK = "Headwater: which tables are kept here, and how far each has got; format 2"
_TABLE = SQL(
    "CREATE TABLE headwater_sinks ("
    "id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name TEXT NOT NULL, version INTEGER NOT NULL, "
    "columns TEXT NOT NULL, key TEXT NOT NULL, published BOOLEAN NOT NULL, "
    "batch BIGINT NOT NULL DEFAULT -1, epoch BIGINT NOT NULL DEFAULT 0, "
    "positions TEXT NOT NULL DEFAULT '', clock BIGINT, filled BOOLEAN NOT NULL DEFAULT false, "
    "changes BIGINT NOT NULL, adopted BOOLEAN NOT NULL, UNIQUE (name, version))"
)
_ONE_PUBLISHED = SQL("CREATE UNIQUE INDEX ON headwater_sinks (name) WHERE published")
_VERSIONS = SQL(
    "SELECT id, name, version, columns, key, published, batch, epoch, positions, clock, filled, changes, "
    "adopted FROM headwater_sinks WHERE name = %s ORDER BY version"
)
_LOCK = SQL("SELECT id FROM headwater_sinks WHERE name = %s ORDER BY id FOR UPDATE")
_READERS = SQL(
    "SELECT DISTINCT grantee, CASE grantee WHEN 0 THEN '' ELSE pg_get_userbyid(grantee) END "
    "FROM pg_class, aclexplode(relacl) "
    "WHERE pg_class.oid = to_regclass(%s) AND privilege_type = 'SELECT' AND grantee <> relowner"
)
_ADD = SQL(
    "INSERT INTO headwater_sinks (name, version, columns, key, published, changes, adopted) "
    "VALUES (%s, %s, %s, %s, %s, %s, %s)"
)


def prepare(db: psycopg.Connection) -> None:
    """Make the catalog if it is not there, and keep others from making tables until the commit."""
    db.execute(_EXCLUSIVE)
    if tables.exists(db, _CATALOG):
        _check(db)
    else:
        db.execute(_TABLE)
        db.execute(_ONE_PUBLISHED)
        marks.put(db, "TABLE", _CATALOG, _MARK)


def _check(db: psycopg.Connection) -> None:
    if not marks.has(db, _CATALOG, _MARK):
        raise UsageError(
            'table "headwater_sinks" is not Headwater\'s, or of another version of it',
            detail="its comment does not say so; nothing was changed",
            hint="use another schema, as in postgresql://…?options=-csearch_path%3DNAME",
        )


def find(db: psycopg.Connection, name: str, version: int | None = None) -> TableVersion:
    """Return a version of a table, the published one if none is named."""
    try:
        versions = of(db, name)
    except psycopg.errors.UndefinedTable:  # nothing was ever kept here
        raise view_version.unknown(name, version, [], []) from None
    for entry in versions:
        if entry.published if version is None else entry.version == version:
            return entry
    raise view_version.unknown(name, version, names(db), [entry.version for entry in versions])


def of(db: psycopg.Connection, name: str) -> list[TableVersion]:
    """Return every version of a table, oldest first."""
    return [_entry(*row) for row in db.execute(_VERSIONS, (name,)).fetchall()]


def names(db: psycopg.Connection) -> list[str]:
    """Return the names of all that is kept in the database."""
    if not tables.exists(db, _CATALOG):
        return []
    return sorted(name for (name,) in db.execute("SELECT DISTINCT name FROM headwater_sinks"))


def add(
    db: psycopg.Connection, name: str, version: int, keyed: KeyedSchema, *, adopted: bool
) -> TableVersion:
    """Add a version; the first one of a name is published at once."""
    declared = (schemas.ddl(keyed.schema), json.dumps(keyed.key))
    db.execute(_ADD, (name, version, *declared, not of(db, name), first_change(version), adopted))
    return find(db, name, version)


def lock(db: psycopg.Connection, name: str) -> None:
    """Wait for the commits to all versions of a table, and keep others from beginning."""
    db.execute(_LOCK, (name,))


def publish(db: psycopg.Connection, name: str, version: int) -> None:
    """Let a version and the published one change places."""
    lock(db, name)
    new = find(db, name, version)
    for old in [entry for entry in of(db, name) if entry.published and not new.published]:
        grants = _grants(db, old)
        tables.rename(db, old, f"{name}@{old.version}")
        _grant(db, grants, new)
    if not new.published:
        tables.rename(db, new, name)
        db.execute("UPDATE headwater_sinks SET published = false WHERE name = %s AND published", (name,))
        db.execute("UPDATE headwater_sinks SET published = true WHERE id = %s", (new.id,))


def remove(db: psycopg.Connection, version: TableVersion) -> None:
    """Forget a version and what it holds."""
    tables.drop(db, version)
    db.execute("DELETE FROM headwater_sinks WHERE id = %s", (version.id,))


def _grants(db: psycopg.Connection, old: TableVersion) -> list[tuple[str, Composable]]:
    """Return who may read which part of a version."""
    grants: list[tuple[str, Composable]] = []
    for part, table in (("rows", old.sql.target), ("changes", old.sql.changes)):
        for number, role in db.execute(_READERS, (table.as_string(db),)).fetchall():
            grants.append((part, Identifier(role) if number else SQL("PUBLIC")))
    return grants


def _grant(db: psycopg.Connection, grants: list[tuple[str, Composable]], new: TableVersion) -> None:
    """Let those read the new version who may read the old one."""
    for part, who in grants:
        target = new.sql.target if part == "rows" else new.sql.changes
        db.execute(SQL("GRANT SELECT ON {} TO {}").format(target, who))


def _entry(
    id: int, name: str, version: int, columns: str, key: str, published: bool, *more: Any
) -> TableVersion:
    batch, epoch, reached, *rest = more
    return TableVersion(
        id,
        name,
        version,
        columns,
        tuple(json.loads(key)),
        published,
        batch,
        epoch,
        positions(reached),
        *rest,
    )
