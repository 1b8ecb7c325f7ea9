"""The publication that says which tables a stream has: one of the capture's own, or one that was given.

Invariant: a publication that was given is not changed; one that is used sends every change of the tables that
are asked for, whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import psycopg
from psycopg.sql import SQL, Composable, Identifier

from headwater.capture.postgres.catalog import PostgresTable
from headwater.errors import SourceRefused

_FOUND: Final = """
    SELECT pubviaroot AS root, pubinsert AND pubupdate AND pubdelete AND pubtruncate AS whole
    FROM pg_publication WHERE pubname = %s
"""
_TABLES: Final = "SELECT schemaname, tablename FROM pg_publication_tables WHERE pubname = %s"
_FILTERED: Final = """
    SELECT r.prrelid::regclass::text FROM pg_publication_rel r JOIN pg_publication p ON p.oid = r.prpubid
    WHERE p.pubname = %s AND (r.prqual IS NOT NULL OR r.prattrs IS NOT NULL)
"""
_FILTERS_FROM: Final = 150_000


@dataclass(frozen=True)
class Publication:
    """A publication, which is there or not."""

    name: str
    given: bool

    def exists(self, db: psycopg.Connection) -> bool:
        """Tell whether it is there."""
        return self._found(db) is not None

    def publish(self, db: psycopg.Connection, tables: Sequence[PostgresTable]) -> None:
        """Let it have these tables, or check that it has them."""
        if self.given:
            self._check(db, tables)
            return
        try:
            self._make(db, tables)
        except psycopg.errors.InsufficientPrivilege as error:
            hint = f"let the owner of the tables do it: CREATE PUBLICATION {self.name} FOR TABLE …"
            raise self._refused(str(error).splitlines()[0], hint) from None

    def _make(self, db: psycopg.Connection, tables: Sequence[PostgresTable]) -> None:
        if self.exists(db):
            if self._published(db) == {(each.schema, each.name) for each in tables}:
                return  # no lock is asked for where nothing changes
            db.execute(
                SQL("ALTER PUBLICATION {} SET TABLE {}").format(Identifier(self.name), _listed(tables))
            )
        else:
            made = SQL("CREATE PUBLICATION {} FOR TABLE {} WITH (publish_via_partition_root = true)")
            db.execute(made.format(Identifier(self.name), _listed(tables)))

    def drop(self, db: psycopg.Connection) -> None:
        """Remove it if it was made by a capture."""
        if not self.given:
            db.execute(SQL("DROP PUBLICATION IF EXISTS {}").format(Identifier(self.name)))

    def _found(self, db: psycopg.Connection) -> tuple[Any, ...] | None:
        return db.execute(_FOUND, (self.name,)).fetchone()

    def _check(self, db: psycopg.Connection, tables: Sequence[PostgresTable]) -> None:
        found = self._found(db)
        if found is None:
            raise SourceRefused(
                f'publication "{self.name}" does not exist',
                hint=f"create it: CREATE PUBLICATION {self.name} FOR TABLE … "
                "WITH (publish_via_partition_root = true)",
            )
        via_root, whole = found
        if not whole or self._filtered(db):
            raise self._refused(
                "it leaves changes, rows or columns out", "publish all operations, rows and columns"
            )
        if not via_root and any(each.partitioned for each in tables):
            option = "set publish_via_partition_root = true for it"
            raise self._refused("it publishes partitions, and not the tables that they are parts of", option)
        self._check_tables(db, tables)

    def _check_tables(self, db: psycopg.Connection, tables: Sequence[PostgresTable]) -> None:
        published = self._published(db)
        missing = [each.title for each in tables if (each.schema, each.name) not in published]
        if missing:
            detail = f"it does not have {', '.join(missing)}"
            raise self._refused(detail, "add the tables to it: ALTER PUBLICATION … ADD TABLE …")

    def _published(self, db: psycopg.Connection) -> set[tuple[str, str]]:
        return {(schema, table) for schema, table in db.execute(_TABLES, (self.name,)).fetchall()}

    def _filtered(self, db: psycopg.Connection) -> bool:
        newer = db.info.server_version >= _FILTERS_FROM
        return newer and db.execute(_FILTERED, (self.name,)).fetchone() is not None

    def _refused(self, detail: str, hint: str) -> SourceRefused:
        return SourceRefused(f'publication "{self.name}" cannot be captured', detail=detail, hint=hint)


def _listed(tables: Sequence[PostgresTable]) -> Composable:
    # Without ONLY, the tables that inherit from one would be published too, under names of their own.
    return SQL(", ").join(
        SQL("{}" if each.partitioned else "ONLY {}").format(Identifier(each.schema, each.name))
        for each in tables
    )
