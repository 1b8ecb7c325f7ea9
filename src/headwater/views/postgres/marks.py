"""Marks on what Headwater has made in a database: a comment that says what it is, and for which entry.

A name alone is no proof: a user may have a table ``orders_changes``. So whatever is made gets a mark in
the transaction that makes it, and nothing is renamed, altered or dropped before its mark is found, with
the lock held that the change needs. Invariant: what carries no mark of ours stays as it is.
"""

from __future__ import annotations

from typing import Literal

import psycopg
from psycopg.sql import SQL, Composable
from psycopg.sql import Literal as Text

from headwater.errors import UsageError

Kind = Literal["TABLE", "INDEX"]
_COMMENT = "SELECT obj_description(to_regclass(%s), 'pg_class')"


def put(db: psycopg.Connection, kind: Kind, name: Composable, mark: str) -> None:
    """Mark what was just made."""
    db.execute(SQL("COMMENT ON {} {} IS {}").format(SQL(kind), name, Text(mark)))


def has(db: psycopg.Connection, name: Composable, mark: str) -> bool:
    """Tell whether something carries a mark; a user may have written more beside it."""
    row = db.execute(_COMMENT, (name.as_string(db),)).fetchone()
    return row is not None and mark in (row[0] or "")


def check(db: psycopg.Connection, table: Composable, mark: str) -> None:
    """Refuse a table that does not carry a mark."""
    if has(db, table, mark):
        return
    name = table.as_string(db)
    again = f"COMMENT ON TABLE {name} IS {Text(mark).as_string(db)}"
    raise UsageError(
        f"table {name} is not the one that Headwater has made",
        detail="its comment does not say so; nothing was changed",
        hint=f"move it out of the way; or, if it is and has lost its comment, run {again}",
    )


def hold(db: psycopg.Connection, table: Composable, mark: str) -> None:
    """Keep everybody else from a table until the transaction ends, and check that it is ours."""
    db.execute(SQL("LOCK TABLE {} IN ACCESS EXCLUSIVE MODE").format(table))
    check(db, table, mark)
