"""The connection of a capture to an application's SQLite file.

The application's settings are left as they are, its journal mode among them. Transactions are short: a
reader that stays would keep the write-ahead log from being reused, and in other modes the application from
writing. Invariant: a file that is not there is not made; what SQLite refuses is told with the file's name.
"""

from __future__ import annotations

import os
import sqlite3
import urllib.parse
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from headwater.errors import HeadwaterError, SourceRefused, SourceUnavailable, UsageError

_TRANSIENT = {
    sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_PROTOCOL, sqlite3.SQLITE_SCHEMA, sqlite3.SQLITE_FULL,
}  # fmt: skip
"""What may pass by itself."""
_HINTS = {
    sqlite3.SQLITE_BUSY: "another program has been writing all the time: its transactions should be shorter",
    sqlite3.SQLITE_NOTADB: "check the path: the file is something else, or encrypted",
    sqlite3.SQLITE_READONLY: "a capture writes to the file and its directory: its triggers and outbox",
    sqlite3.SQLITE_FULL: "make room on the disk: the application cannot write either",
    sqlite3.SQLITE_CORRUPT: "PRAGMA integrity_check tells more; restore the file from a backup",
}
Row = tuple[Any, ...]
T = TypeVar("T")


class SqliteConnection:
    """A connection to one file."""

    def __init__(self, path: Path, busy_seconds: float):
        self.path, self.title = path, f'SQLite database "{path}"'
        self._busy_seconds = busy_seconds
        self._file = self._identity()
        uri = f"file:{urllib.parse.quote(str(path.absolute()))}?mode=rw"
        with self._translated():
            self._db = sqlite3.connect(
                uri, uri=True, timeout=busy_seconds, isolation_level=None, check_same_thread=False
            )
        try:
            self.value("PRAGMA schema_version")  # opens the file, which connecting does not
        except BaseException:
            self._db.close()
            raise

    def rows(self, sql: str, *values: object) -> list[Row]:
        """Return what a query finds."""
        with self._translated():
            return self._db.execute(sql, values).fetchall()

    def value(self, sql: str, *values: object) -> Any:
        """Return the first column of the first row, or None."""
        found = self.rows(sql, *values)
        return found[0][0] if found else None

    def execute(self, sql: str, *values: object) -> int:
        """Run a statement and return how many rows it has changed."""
        with self._translated():
            return self._db.execute(sql, values).rowcount

    def blocks(self, sql: str, values: Sequence[object], rows: int) -> Generator[list[Row], None, None]:
        """Yield what a query finds, some rows at a time; close it early to end the query."""
        with self._translated():
            cursor = self._db.execute(sql, values)
            try:
                while block := cursor.fetchmany(rows):
                    yield block
            finally:
                cursor.close()

    def readable(self, read: Callable[[], T]) -> T:
        """Return what a function reads, with the bytes of texts that are no UTF-8 as lone surrogates."""
        try:
            return read()
        except UnreadableText:
            usual = self._db.text_factory
            self._db.text_factory = lambda text: text.decode("utf-8", "surrogateescape")
            try:
                return read()
            finally:
                self._db.text_factory = usual

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """See the database as it is at the first query, until the end."""
        self.execute("BEGIN")
        try:
            yield
        finally:
            self._roll_back()

    @contextmanager
    def transaction(self, timeout: float | None = None) -> Iterator[None]:
        """Change the database, all or nothing; waits for other writers, as long as for anything or less."""
        self._wait_at_most(self._busy_seconds if timeout is None else timeout)
        try:
            self.execute("BEGIN IMMEDIATE")
        finally:
            self._wait_at_most(self._busy_seconds)
        try:
            yield
            self.execute("COMMIT")
        finally:
            self._roll_back()

    def check_file(self) -> None:
        """Refuse to go on with a file that is no longer the one of that name."""
        if self._identity() != self._file:
            raise SourceUnavailable(
                f"{self.title} was replaced by another file", hint="it is opened anew when the capture is"
            )

    def close(self) -> None:
        """Close the connection."""
        self._db.close()

    def _wait_at_most(self, seconds: float) -> None:
        self.execute(f"PRAGMA busy_timeout={round(seconds * 1000)}")

    def _roll_back(self) -> None:
        if self._db.in_transaction:
            self._db.execute("ROLLBACK")

    def _identity(self) -> tuple[int, int]:
        try:
            found = os.stat(self.path)
        except OSError as error:
            raise SourceUnavailable(
                f"{self.title} cannot be opened",
                detail=error.strerror,
                hint="check the path; the application makes the file, a capture does not",
            ) from None
        return found.st_dev, found.st_ino

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.ProgrammingError as error:
            if "closed database" not in str(error):
                raise
            raise UsageError(f"{self.title} is closed") from None
        except sqlite3.Error as error:
            raise self._error(error) from error

    def _error(self, error: sqlite3.Error) -> HeadwaterError:
        if str(error).startswith("Could not decode to UTF-8"):
            return UnreadableText(f"{self.title} holds text that is no UTF-8", detail=str(error))
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # without what SQLite adds to it
        kind = DatabaseBusy if code == sqlite3.SQLITE_BUSY else SourceUnavailable
        kind = kind if code in _TRANSIENT else SourceRefused
        return kind(f"{self.title} cannot be captured", detail=str(error), hint=_HINTS.get(code))


class DatabaseBusy(SourceUnavailable):
    """Others have been writing all the time."""


class UnreadableText(SourceRefused):
    """A text is no UTF-8: it has to be read leniently."""
