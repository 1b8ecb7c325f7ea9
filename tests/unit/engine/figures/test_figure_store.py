"""The file of figures: read while it is written, and begun anew where it is damaged."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from headwater.engine.figures.figure_store import STORE, open_for_writing, reading, transaction


def test_there_is_nothing_to_read_before_anything_was_written(tmp_path: Path) -> None:
    with reading(tmp_path) as connection:
        assert connection is None
    assert list(tmp_path.iterdir()) == [], "reading makes nothing"


def test_a_damaged_file_is_not_read_and_is_begun_anew_by_the_next_runner(tmp_path: Path) -> None:
    (tmp_path / STORE).write_bytes(b"no database at all, but longer than a header of one is" * 20)
    with reading(tmp_path) as connection:
        assert connection is None
    open_for_writing(tmp_path).close()
    with reading(tmp_path) as connection:
        assert connection is not None


def test_what_is_noted_in_a_transaction_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    db = open_for_writing(tmp_path)
    with pytest.raises(ValueError, match="it broke"), transaction(db):
        db.execute("INSERT INTO latest VALUES ('node', 'seen', '{}')")
        raise ValueError("it broke")
    assert db.execute("SELECT count(*) FROM latest").fetchone() == (0,)
    db.close()


def test_a_reader_cannot_change_anything(tmp_path: Path) -> None:
    open_for_writing(tmp_path).close()
    with reading(tmp_path) as connection, pytest.raises(sqlite3.OperationalError):
        assert connection is not None
        connection.execute("DELETE FROM points")
