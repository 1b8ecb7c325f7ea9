from __future__ import annotations

import logging
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
