"""What the contract tests of captured databases share: a database, and what replaying its changes makes."""

from __future__ import annotations

import itertools
import re
import sqlite3
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any

import pymysql

import mariadb_server
from headwater.capture.change import DELETE, Delivery, TableChanges, Truncation
from headwater.capture.mysql.source import MySqlSource
from headwater.capture.source import CaptureSource
from headwater.capture.sqlite.source import SqliteSource

Row = tuple[Any, ...]
SECONDS = 30.0
DEADLOCK = 1213


class Database(ABC):
    """A database that is captured, as its application sees it."""

    inserts: Sequence[str] = ("INSERT",)
    """The ways to insert a row, for better or worse."""
    updates: Sequence[str] = ("UPDATE",)
    pause = 0.0
    """How long a writer waits between two statements, in seconds, where it would outrun any reader."""
    backslash = "\\"
    """How a text in SQL has a backslash."""
    makes_objects = True
    """Whether a capture makes anything in the database, so that dropping it takes something away."""

    def __init__(self) -> None:
        self._opened: list[CaptureSource] = []

    @abstractmethod
    def connect(self) -> Any:
        """Return a connection whose transactions begin and end by SQL alone."""

    @abstractmethod
    def attempt(self, db: Any, statement: str) -> None:
        """Run a statement; one that a constraint refuses does nothing, and its transaction goes on."""

    @abstractmethod
    def objects(self) -> set[str]:
        """Return the names of everything in it: tables, triggers, whatever a capture could leave behind."""

    @abstractmethod
    def other(self) -> Database:
        """Return another database of the same kind, which is empty."""

    @abstractmethod
    def _source(self, name: str) -> CaptureSource:
        """Open it to be captured."""

    def forget(self) -> None:  # noqa: B027  # most forget what is confirmed
        """Let a database that keeps changes by a rule of its own forget those until now."""

    def source(self, name: str = "shop") -> CaptureSource:
        self._opened.append(self._source(name))
        return self._opened[-1]

    def execute(self, *statements: str) -> None:
        """Run statements, each in a transaction of its own."""
        with closing(self.connect()) as db:
            for each in statements:
                db.execute(each)

    def transaction(self, *statements: str, end: str = "COMMIT") -> None:
        self.execute_together(["BEGIN", *statements, end])

    def execute_together(self, statements: Iterable[str]) -> None:
        """Run statements on one connection, where one that is refused does nothing."""
        with closing(self.connect()) as db:
            for each in statements:
                self.attempt(db, each)

    def rows(self, query: str) -> list[Row]:
        with closing(self.connect()) as db:
            return [tuple(row) for row in db.execute(query).fetchall()]

    def close(self) -> None:
        for each in self._opened:
            each.close()


class SqliteDatabase(Database):
    """A file in write-ahead mode."""

    inserts = ("INSERT", "INSERT OR REPLACE", "INSERT OR IGNORE", "INSERT OR FAIL")
    updates = ("UPDATE", "UPDATE OR REPLACE", "UPDATE OR IGNORE", "UPDATE OR FAIL")

    def __init__(self, path: Path):
        super().__init__()
        self.path = path
        self.execute("PRAGMA journal_mode=WAL")

    def connect(self) -> Any:
        return sqlite3.connect(self.path, isolation_level=None, timeout=SECONDS, check_same_thread=False)

    def attempt(self, db: Any, statement: str) -> None:
        with suppress(sqlite3.IntegrityError):
            db.execute(statement)

    def objects(self) -> set[str]:
        return {name for (name,) in self.rows("SELECT name FROM sqlite_master")}

    def other(self) -> SqliteDatabase:
        return SqliteDatabase(self.path.with_name(f"other-{self.path.name}"))

    def _source(self, name: str) -> CaptureSource:
        return SqliteSource(self.path, name)


class _Statements:
    """A connection of PyMySQL with the manners of the others, which takes statements in their dialect."""

    def __init__(self, connection: Any, idle: list[Any]):
        self._connection, self._idle = connection, idle
        self._begun: list[str] = []
        """The statements of the transaction at hand: a deadlock takes all of them back."""

    def execute(self, statement: str) -> Any:
        ends = statement in ("COMMIT", "ROLLBACK")
        if statement == "BEGIN" or (self._begun and not ends):
            self._begun.append(statement)
        todo = [statement]
        while True:
            cursor = self._connection.cursor()
            try:
                for each in todo:
                    cursor.execute(_in_mysql(each))
            except pymysql.err.IntegrityError:
                self._begun = self._begun[:-1]  # it has done nothing
                raise
            except pymysql.err.OperationalError as error:
                if error.args[0] != DEADLOCK:
                    raise
                todo = list(self._begun) or [statement]
                continue
            if ends:
                self._begun.clear()
            return cursor

    def close(self) -> None:
        """Leave the connection to the next, which is spared the time that it takes to make one."""
        self._connection.rollback()
        self._idle.append(self._connection)


def _in_mysql(statement: str) -> str:
    """Return a statement as MySQL says it: texts of a key have a length, and conflicts are duplicate keys."""
    if statement.startswith("CREATE TABLE"):
        return re.sub(r"(?<=CREATE TABLE )\w+", r"`\g<0>`", statement).replace("TEXT", "VARCHAR(40)")
    if statement.endswith("DO NOTHING"):
        return statement.partition(" ON CONFLICT")[0].replace("INSERT", "INSERT IGNORE", 1)
    return re.sub(r"ON CONFLICT \(\w+\) DO UPDATE SET", "ON DUPLICATE KEY UPDATE", statement)


class MariadbDatabase(Database):
    """A database of a server, which keeps one binlog for all of them."""

    inserts = ("INSERT", "INSERT IGNORE", "REPLACE")
    updates = ("UPDATE", "UPDATE IGNORE")
    pause = 0.005
    backslash = "\\\\"
    makes_objects = False

    def __init__(self, server: mariadb_server.Server, name: str):
        super().__init__()
        self._server, self._name = server, name
        self._others = ExitStack()
        self._idle: list[Any] = []

    def connect(self) -> Any:
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = self._server.connect(self._name)
        return _Statements(connection, self._idle)

    def attempt(self, db: Any, statement: str) -> None:
        with suppress(pymysql.err.IntegrityError):
            db.execute(statement)

    def objects(self) -> set[str]:
        return {name for (name,) in self.rows("SHOW TABLES")}

    def other(self) -> MariadbDatabase:
        server = self._others.enter_context(mariadb_server.running_server())
        return MariadbDatabase(server, self._others.enter_context(mariadb_server.own_database(server)))

    def forget(self) -> None:
        # A server sees that a reader has gone when it sends it something next, and keeps its file till then.
        for row in self.rows("SHOW PROCESSLIST"):
            if row[4] == "Binlog Dump":
                self.execute(f"KILL {row[0]}")
        self.execute("FLUSH BINARY LOGS")
        last = self.rows("SHOW BINARY LOGS")[-1][0]
        until = time.monotonic() + SECONDS
        while len(self.rows("SHOW BINARY LOGS")) > 1:
            assert time.monotonic() < until, "the binlog is still read"
            self.execute(f"PURGE BINARY LOGS TO '{last}'")

    def close(self) -> None:
        super().close()
        for each in self._idle:
            each.close()
        self._others.close()

    def _source(self, name: str) -> CaptureSource:
        return MySqlSource(self._server.url(self._name), name)


class Replica:
    """Tables as the changes of a source make them."""

    def __init__(self) -> None:
        self.tables: dict[str, dict[Row, Row]] = {}
        self.changed: set[tuple[str, Row]] = set()
        """The keys of the changes that were replayed, until they are forgotten."""

    def rows(self, table: str) -> list[Row]:
        return sorted(self.tables.get(table, {}).values(), key=repr)

    def apply(self, delivery: Delivery) -> None:
        for each in delivery.changes:
            if isinstance(each, Truncation):
                self.tables[each.table.name] = {}
            else:
                self._apply(each)

    def _apply(self, changes: TableChanges) -> None:
        assert not changes.unfit
        rows = self.tables.setdefault(changes.table.name, {})
        for operation, key, row in zip(changes.operation, keys(changes), values(changes.rows), strict=True):
            self.changed.add((changes.table.name, key))
            if operation == DELETE:
                rows.pop(key, None)
            else:
                rows[key] = row

    def store(self, table: str, key: Sequence[str], batch: Any) -> None:
        """Put rows of a snapshot in their places, but for keys that were changed meanwhile."""
        places = [batch.schema.names.index(name) for name in key]
        for row in values(batch):
            found = tuple(row[place] for place in places)
            if (table, found) not in self.changed:
                self.tables.setdefault(table, {})[found] = row


def values(batch: Any) -> list[Row]:
    return [tuple(row.values()) for row in batch.to_pylist()]


def keys(changes: TableChanges) -> list[Row]:
    return values(changes.rows.select(list(changes.table.key)))


def drain(source: CaptureSource, apply: Callable[[Delivery], None], position: str) -> str:
    """Take in everything that is committed now, from a position that the source has come to."""
    end = source.end()
    until = time.monotonic() + SECONDS
    while not source.passed(position, end):
        assert time.monotonic() < until, "nothing comes any more"
        delivery = source.read(0.2)
        apply(delivery)
        position = delivery.position or position
    return position


def told(source: CaptureSource, position: str) -> list[tuple[Any, ...]]:
    """Return every change that comes until now: transaction by transaction, in the order of their making."""
    found: list[tuple[Any, ...]] = []
    before = itertools.count()

    def note(delivery: Delivery) -> None:
        number = next(before)
        for each in delivery.changes:
            if isinstance(each, Truncation):
                found.append((number, each.transaction, each.index, each.table.name, "truncate", None))
                continue
            rows = zip(each.transaction, each.index, each.operation, values(each.rows), strict=True)
            found.extend((number, int(t), int(i), each.table.name, int(op), row) for t, i, op, row in rows)

    drain(source, note, position)
    return [each[3:] for each in sorted(found, key=lambda each: each[:3])]


def snapshot(source: CaptureSource, replica: Replica, table: str, position: str, limit: int = 7) -> str:
    """Read a table in chunks beside the stream, as a capture does."""
    key = next(each.key for each in source.tables() if each.name == table)
    after: tuple[object, ...] | None = None
    while True:
        chunk = source.chunk(table, after, limit)
        replica.changed.clear()
        while not source.passed(position, chunk.end):
            delivery = source.read(0.2)
            replica.apply(delivery)
            position = delivery.position or position
        replica.store(table, key, chunk.rows)
        if chunk.last:
            return position
        after = chunk.after
