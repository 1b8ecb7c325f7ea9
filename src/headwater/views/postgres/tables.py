"""The tables and the index of one version in a database: how they are made, renamed and dropped.

Invariant: only what carries its mark (``headwater.views.postgres.marks``) is renamed or dropped, and
nothing that is there is taken for ours; a table that a sink was given by its user stays the user's.
"""

from __future__ import annotations

import hashlib
import json

import psycopg
from psycopg.sql import SQL, Composable, Identifier

from headwater.errors import SinkRefused, UsageError
from headwater.views.postgres import marks
from headwater.views.postgres.table_version import TableVersion
from headwater.views.query import index_columns

_INDEXES = SQL(
    "SELECT n.nspname, c.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid "
    "JOIN pg_namespace n ON n.oid = c.relnamespace "
    "WHERE i.indrelid = to_regclass(%s) AND obj_description(c.oid, 'pg_class') = %s"
)


def exists(db: psycopg.Connection, table: Composable) -> bool:
    """Tell whether there is a table, or anything else, of that name."""
    return db.execute("SELECT to_regclass(%s) IS NOT NULL", (table.as_string(db),)).fetchone() == (True,)


def create(db: psycopg.Connection, entry: TableVersion, feed: int) -> None:
    """Make the tables of a version that is new; one that its sink was given is there already."""
    if not entry.adopted:
        _check_free(db, entry, entry.sql.target)
        db.execute(entry.sql.create)
        marks.put(db, "TABLE", entry.sql.target, entry.mark("rows"))
    if feed:
        _create_changes(db, entry)


def check(db: psycopg.Connection, entry: TableVersion, feed: int) -> None:
    """Refuse a version whose table is gone or was emptied, with what it held, or is another one now."""
    if not exists(db, entry.sql.target):
        raise _missing(entry, "is gone")
    if not entry.adopted:
        marks.check(db, entry.sql.target, entry.mark("rows"))
    if entry.filled and db.execute(entry.sql.any).fetchone() == (False,):
        raise _missing(entry, "is empty")
    if not feed:
        return
    if exists(db, entry.sql.changes):
        marks.check(db, entry.sql.changes, entry.mark("changes"))
    else:
        _create_changes(db, entry)


def has_changes(db: psycopg.Connection, entry: TableVersion) -> bool:
    """Tell whether the changes of a version are saved."""
    return marks.has(db, entry.sql.changes, entry.mark("changes"))


def rename(db: psycopg.Connection, entry: TableVersion, to: str) -> None:
    """Give the tables of a version another name, in their schema."""
    check_own(entry)
    for table, part in _parts(db, entry):
        marks.hold(db, table, entry.mark(part))
        name = to.split(".")[-1] + ("_changes" if part == "changes" else "")
        db.execute(SQL("ALTER TABLE {} RENAME TO {}").format(table, Identifier(name)))


def check_own(entry: TableVersion) -> None:
    """Refuse a version whose table is its user's."""
    if entry.adopted:
        raise UsageError(
            f'table "{entry.table}" cannot be replaced by another version',
            detail="it was there before its sink, which fills it and does no more",
            hint="name a table that is not there yet, under another name of the node, which begins anew",
        )


def drop(db: psycopg.Connection, entry: TableVersion) -> None:
    """Remove the tables of a version."""
    for table, part in _parts(db, entry):
        if part == "changes" or not entry.adopted:
            marks.hold(db, table, entry.mark(part))
            db.execute(SQL("DROP TABLE {}").format(table))


def set_index(db: psycopg.Connection, entry: TableVersion, order: str | None) -> None:
    """Make the index for the order of a column, or none, and no other."""
    columns, wanted, existing = index_columns(entry.keyed, order), _index(entry, order), _indexes(db, entry)
    if columns or existing:
        marks.check(db, entry.sql.target, entry.mark("rows"))
    for schema, name in existing:
        if name != wanted:
            db.execute(SQL("DROP INDEX {}").format(Identifier(schema, name)))
    if wanted and wanted not in [name for _, name in existing]:
        db.execute(entry.sql.create_index(wanted, columns))
        index = Identifier(*entry.table.split(".")[:-1], wanted)
        marks.put(db, "INDEX", index, entry.mark("order"))


def has_index(db: psycopg.Connection, entry: TableVersion, order: str | None) -> bool:
    """Tell whether there is the index for the order of a column, and no other."""
    wanted = _index(entry, order)
    return [name for _, name in _indexes(db, entry)] == ([wanted] if wanted else [])


def _create_changes(db: psycopg.Connection, entry: TableVersion) -> None:
    _check_free(db, entry, entry.sql.changes)
    db.execute(entry.sql.create_changes)
    marks.put(db, "TABLE", entry.sql.changes, entry.mark("changes"))


def _check_free(db: psycopg.Connection, entry: TableVersion, table: Composable) -> None:
    if exists(db, table):
        raise UsageError(
            f"{entry.keyed.what} cannot be kept in table {table.as_string(db)}",
            detail="the table is there already, and belongs to no view",
            hint="give the view another name, or drop the table",
        )


def _parts(db: psycopg.Connection, entry: TableVersion) -> list[tuple[Composable, str]]:
    """Return the tables that are there; the changes have the other's row type, so they come first."""
    rows, changes = entry.sql.target, entry.sql.changes
    # Without a feed there are no changes, and a table of that name is somebody else's.
    parts: list[tuple[Composable, str]] = [(changes, "changes")] if has_changes(db, entry) else []
    return parts + ([(rows, "rows")] if exists(db, rows) else [])


def _missing(entry: TableVersion, how: str) -> SinkRefused:
    return SinkRefused(
        f'table "{entry.table}" of {entry.keyed.what} {how}',
        detail=f"up to batch {entry.batch} its rows were committed",
        hint="restore it; or rebuild the view; or delete its row in headwater_sinks, and rename the sink",
    )


def _index(entry: TableVersion, order: str | None) -> str | None:
    columns = index_columns(entry.keyed, order)
    digest = hashlib.sha256(json.dumps(columns).encode()).hexdigest()[:8]
    return f"headwater_order_{entry.id}_{digest}" if columns else None


def _indexes(db: psycopg.Connection, entry: TableVersion) -> list[tuple[str, str]]:
    parameters = (entry.sql.target.as_string(db), entry.mark("order"))
    return db.execute(_INDEXES, parameters).fetchall()
