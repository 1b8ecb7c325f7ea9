"""SQLite's write-ahead log, switched on by whoever comes first.

The switch takes a lock for which SQLite does not wait, however long the connection's timeout: of
several processes that open a new database at once, some are told at once that it is locked. They
only have to ask again. A database that has been switched stays so, and asking costs nothing.
"""

from __future__ import annotations

import sqlite3
import time


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
