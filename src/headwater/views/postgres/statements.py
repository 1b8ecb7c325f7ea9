"""The SQL of a PostgreSQL sink.

Invariant: every name is quoted by psycopg, and every value is a parameter or part of a ``COPY``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from psycopg.abc import AdaptContext
from psycopg.sql import SQL, Composable, Composed, Identifier

from headwater.record import DELETED
from headwater.stores.postgres import columns
from headwater.values.keyed import KeyedSchema

TAKE_OVER = SQL("UPDATE headwater_sinks SET epoch = epoch + 1 WHERE id = %s RETURNING epoch, batch")
LOCK_PROGRESS = SQL(
    "SELECT epoch, batch, changes, published, filled FROM headwater_sinks WHERE id = %s FOR UPDATE"
)
SAVE_PROGRESS = SQL(
    "UPDATE headwater_sinks SET batch = %s, positions = %s, clock = %s, changes = %s, filled = %s "
    "WHERE id = %s"
)
NOTIFY = SQL("SELECT pg_notify('headwater_sinks', %s)")
"""Tells readers that wait for a commit, when it is one."""


class Bound(Composable):
    """A name in a statement that takes parameters, where psycopg reads a ``%`` as the mark of one."""

    def as_bytes(self, context: AdaptContext | None = None) -> bytes:
        """Return the name, with every ``%`` doubled."""
        name: Composable = self._obj
        return name.as_bytes(context).replace(b"%", b"%%")


@dataclass(frozen=True)
class Statements:
    """The statements for one table."""

    table: str
    keyed: KeyedSchema

    @property
    def target(self) -> Composable:
        """The table's name, with its schema if that is given."""
        return Identifier(*self.table.split("."))

    @property
    def stage(self) -> Composable:
        """The name of the session's temporary table."""
        return Identifier("pg_temp", "headwater_stage")

    @cached_property
    def names(self) -> list[Identifier]:
        """The columns, in the schema's order."""
        return [Identifier(field.name) for field in self.keyed.schema]

    @cached_property
    def create(self) -> Composed:
        """Make the table."""
        strict = [f.name in self.keyed.key or not f.nullable for f in self.keyed.schema]
        declared = [
            SQL("{} {}{}").format(
                Identifier(f.name), _plain(columns.sql_type(f)), SQL(" NOT NULL" if s else "")
            )
            for f, s in zip(self.keyed.schema, strict, strict=True)
        ]
        return SQL("CREATE TABLE {} ({}, PRIMARY KEY ({}))").format(
            self.target, _listed(declared), _listed(list(map(Identifier, self.keyed.key)))
        )

    def create_index(self, index: str, columns: list[str]) -> Composed:
        """Make an index of columns; nulls are first in it, as readers have them."""
        listed = [
            SQL("{}{}").format(Identifier(name), SQL("" if name in self.keyed.key else " NULLS FIRST"))
            for name in columns
        ]
        return SQL("CREATE INDEX {} ON {} ({})").format(Identifier(index), self.target, _listed(listed))

    @cached_property
    def prepare(self) -> Composed:
        """Make the session's temporary table, which is empty at the start of each transaction."""
        declared = [
            SQL("{} {}").format(Identifier(f.name), _plain(columns.sql_type(f))) for f in self.keyed.schema
        ]
        return SQL(
            "CREATE TEMPORARY TABLE IF NOT EXISTS headwater_stage ({}, {} BOOLEAN) ON COMMIT DELETE ROWS"
        ).format(_listed(declared), Identifier(DELETED))

    @cached_property
    def copy(self) -> Composed:
        """Stage rows."""
        return SQL("COPY {} FROM STDIN (FORMAT csv)").format(self.stage)

    @cached_property
    def upsert(self) -> Composed:
        """Put the staged rows in their places; a row that stays the same is not written."""
        return SQL("INSERT INTO {} AS t ({}) SELECT {} FROM {} WHERE NOT {} ON CONFLICT ({}) DO {}").format(
            self.target,
            _listed(self.names),
            _listed(self.names),
            self.stage,
            Identifier(DELETED),
            _listed(list(map(Identifier, self.keyed.key))),
            self._replace(),
        )

    @cached_property
    def delete(self) -> Composed:
        """Remove the rows that are staged as deleted."""
        same = [SQL("t.{} = s.{}").format(Identifier(name), Identifier(name)) for name in self.keyed.key]
        return SQL("DELETE FROM {} AS t USING {} AS s WHERE s.{} AND {}").format(
            self.target, self.stage, Identifier(DELETED), SQL(" AND ").join(same)
        )

    @cached_property
    def any(self) -> Composed:
        """Tell whether the table has a row."""
        return SQL("SELECT EXISTS (SELECT 1 FROM {})").format(self.target)

    # Changes

    @property
    def changes(self) -> Composable:
        """The name of the table of changes, beside the table itself."""
        return Identifier(*f"{self.table}_changes".split("."))

    @cached_property
    def create_changes(self) -> Composed:
        """Make the table of changes; its rows before and after are of the table's own row type."""
        return SQL(
            "CREATE TABLE {} (number BIGINT PRIMARY KEY, batch BIGINT, kind SMALLINT, old {}, new {})"
        ).format(self.changes, self.target, self.target)

    @cached_property
    def save_changes(self) -> Composed:
        """Save what the staged rows change; takes the number of the last change, and the batch's."""
        key = [Bound(Identifier(name)) for name in self.keyed.key]
        others = [Bound(Identifier(field.name)) for field in self.keyed.value_fields]
        differs = [SQL("t.{} IS DISTINCT FROM s.{}").format(name, name) for name in others]
        missing = SQL("t.{} IS NULL").format(key[0])
        return SQL(
            "INSERT INTO {changes} SELECT %s + row_number() OVER (ORDER BY {order}), %s, "
            "CASE WHEN s.{deleted} THEN 2 WHEN {missing} THEN 0 ELSE 1 END, t, "
            "CASE WHEN s.{deleted} THEN NULL ELSE ROW({new})::{target} END "
            "FROM {stage} AS s LEFT JOIN {target} AS t ON {same} "
            "WHERE CASE WHEN s.{deleted} THEN NOT {missing} ELSE {differs} END"
        ).format(
            changes=Bound(self.changes), target=Bound(self.target), stage=self.stage,
            deleted=Identifier(DELETED), missing=missing,
            order=_listed([SQL("s.{}").format(name) for name in key]),
            new=_listed([SQL("s.{}").format(Bound(name)) for name in self.names]),
            same=SQL(" AND ").join([SQL("t.{} = s.{}").format(name, name) for name in key]),
            differs=SQL(" OR ").join([missing, *differs]),
        )  # fmt: skip

    @cached_property
    def prune(self) -> Composed:
        """Forget changes up to and with a number."""
        return SQL("DELETE FROM {} WHERE number <= %s").format(Bound(self.changes))

    def _replace(self) -> Composable:
        others = [Identifier(field.name) for field in self.keyed.value_fields]
        if not others:
            return SQL("NOTHING")
        assignments = [SQL("{} = excluded.{}").format(name, name) for name in others]
        old, new = ([SQL("{}.{}").format(SQL(of), n) for n in others] for of in ("t", "excluded"))
        return SQL("UPDATE SET {} WHERE ({}) IS DISTINCT FROM ({})").format(
            _listed(assignments), _listed(old), _listed(new)
        )


def _listed(parts: list[Identifier] | list[Composed]) -> Composed:
    return SQL(", ").join(parts)


def _plain(text: str) -> SQL:
    return SQL(text)  # a type's name, from a table of our own
