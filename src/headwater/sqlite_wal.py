"""SQLite's write-ahead log, switched on by whoever comes first.

The switch takes a lock for which SQLite does not wait, however long the connection's timeout: of
several processes that open a new database at once, some are told at once that it is locked. They
only have to ask again. A database that has been switched stays so, and asking costs nothing.
"""

from __future__ import annotations

import sqlite3
import time
from contextlib import suppress
from pathlib import Path


def write_ahead(db: sqlite3.Connection, seconds: float) -> None:
    """Switch a database to its write-ahead log, waiting up to ``seconds`` for others who do the same."""
    until = time.monotonic() + seconds
    while True:
        try:
            db.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
            time.sleep(0.005)


def discard_damaged(path: Path, error: sqlite3.Error) -> bool:
    """Remove a file of derived data that an error says is damaged; tell whether it was."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    damaged = code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
    if damaged:
        for suffix in ("", "-wal", "-shm"):  # whoever has it open goes on with what it has
            with suppress(FileNotFoundError):
                path.with_name(path.name + suffix).unlink()
    return damaged
