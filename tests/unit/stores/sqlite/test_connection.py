"""Connections to the file of a store."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from headwater.errors import RowError, SinkRefused, SinkUnavailable, UsageError
from headwater.stores.sqlite.connection import SqliteReaders, Writer, translated_errors


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "views.db"


@pytest.fixture
def writer(path: Path) -> Iterator[Writer]:
    writer = Writer(path, "os")
    with writer.transaction() as db:
        db.execute("CREATE TABLE t (n INTEGER UNIQUE)")
    yield writer
    writer.close()


@pytest.fixture
def readers(writer: Writer, path: Path) -> Iterator[SqliteReaders]:
    readers = SqliteReaders(path)
    yield readers
    readers.close()


def put(writer: Writer, number: int) -> None:
    with writer.transaction() as db:
        db.execute("INSERT INTO t VALUES (?)", (number,))


def count(db: sqlite3.Connection) -> int:
    return int(db.execute("SELECT count(*) FROM t").fetchone()[0])


def test_a_transaction_is_all_or_nothing(writer: Writer, readers: SqliteReaders) -> None:
    put(writer, 1)
    with pytest.raises(ZeroDivisionError), writer.transaction() as db:
        db.execute("INSERT INTO t VALUES (2)")
        raise ZeroDivisionError
    with readers.lend() as db:
        assert count(db) == 1


def test_a_snapshot_is_of_one_moment_and_the_next_is_of_now(writer: Writer, readers: SqliteReaders) -> None:
    with readers.snapshot() as db:
        assert count(db) == 0
        put(writer, 1)
        assert count(db) == 0
    with readers.snapshot() as db:
        assert count(db) == 1


def test_no_two_readers_share_a_connection_and_one_is_kept_for_the_next(readers: SqliteReaders) -> None:
    with readers.lend() as one, readers.lend() as other:
        assert one is not other
    with readers.lend() as again:
        assert again in (one, other)


def test_who_reads_cannot_write(readers: SqliteReaders) -> None:
    with pytest.raises(SinkRefused, match="cannot be used"), readers.lend() as db:
        db.execute("INSERT INTO t VALUES (1)")


def test_what_sqlite_refuses_names_the_store(writer: Writer, path: Path) -> None:
    put(writer, 1)
    with pytest.raises(RowError, match=r"views\.db"):
        put(writer, 1)
    with pytest.raises(SinkRefused, match=r"views\.db"), writer.transaction() as db:
        db.execute("SELECT nothing")
    with pytest.raises(SinkUnavailable, match=r"views\.db"), translated_errors(path):
        sqlite3.connect(path / "below").execute("SELECT 1")
    writer.close()
    with pytest.raises(UsageError, match="is closed"):
        put(writer, 2)


def test_threads_take_turns_with_the_connection_that_writes(writer: Writer, readers: SqliteReaders) -> None:
    threads = [threading.Thread(target=put, args=(writer, number)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with readers.lend() as db:
        assert count(db) == 20
