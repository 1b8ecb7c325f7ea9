"""A SQLite file beside the log: whole or not at all, by several processes, and never into a deleted file."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from headwater.errors import LogRefused, LogUnavailable, UsageError
from headwater.log.embedded.state_file import StateFile

TABLES = "CREATE TABLE IF NOT EXISTS t (n INTEGER);"


def opened(path: Path) -> StateFile:
    return StateFile(path, path.parent, TABLES, "notes")


def test_several_open_a_new_file_at_once(tmp_path: Path) -> None:
    def write(n: int) -> None:
        with closing(opened(tmp_path / "x.db")) as state, state.transaction(durable=n % 2 == 0) as db:
            db.execute("INSERT INTO t VALUES (?)", (n,))

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(write, range(16)))
    with closing(opened(tmp_path / "x.db")) as state:
        assert state.rows("SELECT COUNT(*) FROM t") == [(16,)]


def test_a_change_that_fails_is_none(tmp_path: Path) -> None:
    with closing(opened(tmp_path / "x.db")) as state:
        with pytest.raises(ZeroDivisionError), state.transaction() as db:
            db.execute("INSERT INTO t VALUES (1)")
            _ = 1 // 0
        assert state.rows("SELECT * FROM t") == []


def test_nothing_is_stored_into_a_file_that_was_deleted(tmp_path: Path) -> None:
    with closing(opened(tmp_path / "x.db")) as state:
        (tmp_path / "x.db").unlink()
        with pytest.raises(LogRefused, match="notes of log"), state.transaction():
            pass


def test_another_connection_is_noticed_and_a_closed_one_says_so(tmp_path: Path) -> None:
    state, other = opened(tmp_path / "x.db"), opened(tmp_path / "x.db")
    before = state.version()
    with other.transaction() as db:
        db.execute("INSERT INTO t VALUES (1)")
    assert state.version() != before
    state.close()
    other.close()
    with pytest.raises(UsageError, match="closed"):
        state.rows("SELECT 1")


def test_what_is_no_database_is_told(tmp_path: Path) -> None:
    (tmp_path / "x.db").write_bytes(b"no database" * 100)
    with pytest.raises(LogUnavailable, match="cannot be used"):
        opened(tmp_path / "x.db")
