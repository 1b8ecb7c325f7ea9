"""PostgreSQL as the contract tests of captured databases see it: a database of the test's own."""

from __future__ import annotations

import uuid
from contextlib import closing, suppress
from typing import Any

import psycopg
from psycopg.sql import SQL, Identifier
from source_kit import Database

from headwater.capture.postgres.source import PostgresSource
from headwater.capture.source import CaptureSource

_SLOTS = "SELECT slot_name FROM pg_replication_slots WHERE database = current_database()"
_DROP_SLOTS = (
    "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots"
    " WHERE NOT active AND database = current_database()"
)


class PostgresDatabase(Database):
    """A database on a server, which is removed at the end."""

    def __init__(self, server: str):
        super().__init__()
        self._server, self._name = server, f"t{uuid.uuid4().hex[:12]}"
        self._on_server("CREATE DATABASE {}")
        base, _, options = server.partition("?")
        self._url = base.rsplit("/", 1)[0] + "/" + self._name + (f"?{options}" if options else "")

    def connect(self) -> Any:
        return psycopg.connect(self._url, autocommit=True)

    def attempt(self, db: Any, statement: str) -> None:
        inside = db.info.transaction_status != psycopg.pq.TransactionStatus.IDLE
        writes = statement.split()[0] in ("INSERT", "UPDATE", "DELETE")
        if inside and writes:
            db.execute("SAVEPOINT attempt")
        try:
            db.execute(statement)
        except (psycopg.errors.IntegrityError, psycopg.errors.DeadlockDetected):
            if inside and writes:
                db.execute("ROLLBACK TO SAVEPOINT attempt")
        if inside and writes:
            db.execute("RELEASE SAVEPOINT attempt")

    def objects(self) -> set[str]:
        queries = (
            "SELECT relname FROM pg_class WHERE relnamespace::regnamespace::text !~ '^(pg_|information_s)'",
            "SELECT slot_name FROM pg_replication_slots WHERE database = current_database()",
            "SELECT pubname FROM pg_publication",
        )
        return {name for query in queries for (name,) in self.rows(query)}

    def other(self) -> PostgresDatabase:
        return PostgresDatabase(self._server)

    def close(self) -> None:
        super().close()
        with closing(self.connect()) as db:
            while db.execute(_SLOTS).rowcount:  # the server notices a little later that nobody reads one
                with suppress(psycopg.errors.ObjectInUse):
                    db.execute(_DROP_SLOTS)
        self._on_server("DROP DATABASE {} WITH (FORCE)")

    def _source(self, name: str) -> CaptureSource:
        return PostgresSource(self._url, f"{name}_{self._name}")

    def _on_server(self, statement: str) -> None:
        with closing(psycopg.connect(self._server, autocommit=True)) as db:
            db.execute(SQL(statement).format(Identifier(self._name)))
