"""A Delta Lake table built anew beside the old one, and taken over by one commit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from deltalake import DeltaTable

import follower_kit
import versions_kit
from follower_kit import Follower

KILLED = versions_kit.a_kill_around_the_switch_leaves_the_old_one_or_the_new_one
"""The library cannot be used in a process that was forked after its first use."""


@pytest.mark.parametrize("history", [False, True], ids=["current", "history"])
@pytest.mark.parametrize("check", [check for check in versions_kit.CHECKS if check is not KILLED])
def test_a_table_is_built_anew(check: Callable[[Follower], None], history: bool, tmp_path: Path) -> None:
    check(follower_kit.delta_table(tmp_path, history=history))
    assert not list(tmp_path.glob("*@*"))


def test_a_rebuild_keeps_the_history_and_the_versions_of_rows_that_stay_the_same(tmp_path: Path) -> None:
    follower = follower_kit.delta_table(tmp_path, history=True)
    versions_kit.write(follower, 1, {1: "a", 2: "b", 3: "c"})
    versions_kit.write(follower, 2, {1: "a", 2: "B"})
    versions_kit.versions_of(follower).publish(versions_kit.SCHEMA, 2)
    rows = DeltaTable(tmp_path / "delta-True").to_pyarrow_table().sort_by("id").to_pylist()
    assert [(row["id"], row["name"], row["is_current"]) for row in rows if row["id"] != 2] == [
        (1, "a", True),
        (3, "c", False),
    ]
    assert {(row["name"], row["is_current"]) for row in rows if row["id"] == 2} == {("b", False), ("B", True)}


def test_the_commit_before_the_switch_can_still_be_read(tmp_path: Path) -> None:
    follower = follower_kit.delta_table(tmp_path, history=False)
    versions_kit.write(follower, 1, {1: "a"})
    before = DeltaTable(tmp_path / "delta-False").version()
    versions_kit.write(follower, 2, {2: "b"})
    versions_kit.versions_of(follower).publish(versions_kit.SCHEMA, 2)
    old = DeltaTable(tmp_path / "delta-False", version=before).to_pyarrow_table().to_pylist()
    assert old == [{"id": 1, "name": "a"}]
