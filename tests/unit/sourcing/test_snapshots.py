from __future__ import annotations

import logging
import pickle
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from headwater.sourcing.snapshots import FoldedState, Snapshots


def test_the_newest_snapshot_of_each_aggregate_is_kept(tmp_path: Path) -> None:
    snapshots = Snapshots(tmp_path / "s.db", "one")
    for version in (3, 9, 5):
        snapshots.save("ada", FoldedState({"balance": version}, version))
    assert snapshots.newest("ada") == FoldedState({"balance": 9}, 9)
    assert snapshots.newest("bob") is None
    snapshots.forget("ada")
    assert snapshots.newest("ada") is None
    snapshots.close()


def test_those_of_another_fold_are_removed(tmp_path: Path) -> None:
    before = Snapshots(tmp_path / "s.db", "one")
    before.save("ada", FoldedState(1, 5))
    before.close()
    after = Snapshots(tmp_path / "s.db", "two")
    assert after.newest("ada") is None
    after.save("ada", FoldedState(2, 3))
    assert after.newest("ada") == FoldedState(2, 3)
    after.close()


def test_without_a_file_there_are_none() -> None:
    snapshots = Snapshots(None, "")
    snapshots.save("ada", FoldedState(1, 5))
    assert snapshots.newest("ada") is None
    snapshots.close()


def test_what_cannot_be_read_or_stored_is_told_and_not_used(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "s.db").write_bytes(b"garbage" * 1000)
    with caplog.at_level(logging.WARNING, "headwater"):
        snapshots = Snapshots(tmp_path / "s.db", "one")
        snapshots.save("ada", FoldedState(lambda: None, 5))
        assert snapshots.newest("ada") is None
        snapshots.save("ada", FoldedState(1, 5))
        assert snapshots.newest("ada") == FoldedState(1, 5)
    assert "not kept" in caplog.text and "cannot be used" in caplog.text
    snapshots.close()


def test_one_that_was_damaged_anywhere_is_as_none(tmp_path: Path) -> None:
    snapshots = Snapshots(tmp_path / "s.db", "one")
    snapshots.save("ada", FoldedState(1, 5))
    with closing(sqlite3.connect(tmp_path / "s.db", isolation_level=None)) as db:
        [(content,)] = db.execute("SELECT content FROM snapshots")
        flipped = [content[:n] + bytes([content[n] ^ 1]) + content[n + 1 :] for n in range(len(content))]
        for damaged in (*flipped, b"", content[:-1], pickle.dumps(FoldedState(2, 5))):
            db.execute("UPDATE snapshots SET content = ?", (damaged,))
            assert snapshots.newest("ada") is None
        db.execute("UPDATE snapshots SET content = ?", (content,))
    assert snapshots.newest("ada") == FoldedState(1, 5)
    snapshots.close()
