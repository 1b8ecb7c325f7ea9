"""A new database opened by many at once: each waits its turn."""

from __future__ import annotations

import multiprocessing
import sqlite3
from pathlib import Path

import pytest

from headwater.sqlite_wal import discard_damaged, write_ahead


def _open(path: Path, start, failures) -> None:
    start.wait()
    db = sqlite3.connect(path, timeout=60, isolation_level=None)
    try:
        write_ahead(db, 60)
        db.execute("CREATE TABLE IF NOT EXISTS t (x)")
    except sqlite3.OperationalError as error:
        failures.put(str(error))
    failures.put(None)


@pytest.mark.slow
def test_many_processes_that_open_a_new_database_at_once_all_succeed(tmp_path):
    fork = multiprocessing.get_context("fork")
    for attempt in range(30):
        start, failures = fork.Barrier(6), fork.Queue()
        path = tmp_path / f"{attempt}.db"
        them = [fork.Process(target=_open, args=(path, start, failures)) for _ in range(6)]
        for one in them:
            one.start()
        assert [failures.get(timeout=60) for _ in them] == [None] * 6
        for one in them:
            one.join()


def test_a_database_that_stays_locked_is_reported(tmp_path):
    holder, other = (sqlite3.connect(tmp_path / "x.db", timeout=0, isolation_level=None) for _ in range(2))
    holder.execute("BEGIN EXCLUSIVE")
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        write_ahead(other, 0.05)
    holder.close()
    other.close()


def test_only_a_damaged_file_is_discarded(tmp_path: Path) -> None:
    path = tmp_path / "tags.db"
    path.write_bytes(b"x")
    full = sqlite3.OperationalError()
    full.sqlite_errorcode = sqlite3.SQLITE_FULL
    assert not discard_damaged(path, full)
    assert path.exists()
