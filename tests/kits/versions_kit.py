"""What every target does that can be built anew beside what readers see: checks that each is put through."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from functools import partial

import pyarrow as pa
import pytest

from follower_kit import Follower
from headwater.errors import Fenced
from headwater.sinks import Batch, crash
from headwater.sinks.versions import TargetVersions

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string())])
OLD = {1: "old", 2: "old", 3: "old"}
NEW = {2: "new", 4: "new"}
_POINTS = 20


def rows(held: dict[int, str]) -> pa.Table:
    return pa.table({"id": list(held), "name": list(held.values())}, schema=SCHEMA)


def versions_of(follower: Follower) -> TargetVersions:
    assert follower.target.versions is not None
    return follower.target.versions


def write(follower: Follower, version: int, held: dict[int, str], number: int = 0) -> None:
    with versions_of(follower).open(SCHEMA, version) as sink:
        sink.begin()
        assert sink.commit(Batch(number, rows(held)))


def a_version_is_built_beside_the_one_that_readers_see(follower: Follower) -> None:
    """Until it takes its place, whole; then the old runner is fenced, and the new one goes on."""
    versions = versions_of(follower)
    assert versions.published() == 1
    with versions.open(SCHEMA, 1) as old:
        old.begin()
        for number in range(7):  # so that its rows have seen more batches than those of the rebuild
            old.commit(Batch(number, rows(OLD | {9: "gone"})))
        old.commit(Batch(7, pa.table({"id": [9], "name": [None], "_deleted": [True]})))
        versions.prepare(2)
        write(follower, 2, NEW)
        assert (versions.published(), dict(follower.held())) == (1, OLD)
        versions.publish(SCHEMA, 2)
        assert (versions.published(), dict(follower.held())) == (2, NEW)
        with pytest.raises(Fenced):
            old.commit(Batch(8, rows({1: "late"})))
        with pytest.raises(Fenced):
            old.begin()
    assert dict(follower.held()) == NEW
    with versions.open(SCHEMA, 2) as sink:
        assert sink.begin() == 0
        assert sink.resume("0") is None
        assert sink.commit(Batch(1, rows({1: "newer", 9: "back"})))
        contents = sink.read_back()
        assert contents is not None
        read = [row for batch in contents.rows for row in batch.to_pylist()]
        assert contents.settled()
    assert dict(follower.held()) == NEW | {1: "newer", 9: "back"}
    assert {row["id"]: row["name"] for row in read} == NEW | {1: "newer", 9: "back"}


def what_an_unfinished_rebuild_left_is_removed_by_the_next(follower: Follower) -> None:
    """And readers have not seen any of it."""
    versions = versions_of(follower)
    write(follower, 1, OLD)
    write(follower, 2, {7: "unfinished"}, number=3)
    assert dict(follower.held()) == OLD
    versions.prepare(2)
    write(follower, 2, NEW)
    versions.publish(SCHEMA, 2)
    assert dict(follower.held()) == NEW
    for number in (3, 4):
        versions.prepare(number)
        write(follower, number, NEW | {number: "next"})
        versions.publish(SCHEMA, number)
        assert (versions.published(), dict(follower.held())) == (number, NEW | {number: "next"})


def a_kill_around_the_switch_leaves_the_old_one_or_the_new_one(follower: Follower) -> None:
    """``kill -9`` between any two steps: readers see one of them whole, and the next switch completes it."""
    versions = versions_of(follower)
    write(follower, 1, OLD)
    for count in range(1, _POINTS):
        before, number = dict(follower.held()), versions.published() + 1
        after = {number: f"version {number}"}
        versions.prepare(number)
        write(follower, number, after)
        died = _killed_at(count, partial(versions.publish, SCHEMA, number))
        assert dict(follower.held()) in (before, after)
        versions.publish(SCHEMA, number)
        assert dict(follower.held()) == after
        if not died:
            return
    raise AssertionError("a switch went through too many points")


def a_target_that_was_never_written_to_can_be_built_anew(follower: Follower) -> None:
    """Then the version that was built is the first that readers see."""
    versions = versions_of(follower)
    versions.prepare(2)
    write(follower, 2, NEW)
    versions.publish(SCHEMA, 2)
    assert (versions.published(), dict(follower.held())) == (2, NEW)


CHECKS: list[Callable[[Follower], None]] = [
    a_version_is_built_beside_the_one_that_readers_see,
    what_an_unfinished_rebuild_left_is_removed_by_the_next,
    a_kill_around_the_switch_leaves_the_old_one_or_the_new_one,
    a_target_that_was_never_written_to_can_be_built_anew,
]


def _killed_at(count: int, run: Callable[[], None]) -> bool:
    """Run in a process that dies at its ``count``-th point; tell whether it got as far as that."""
    child = os.fork()
    if child == 0:
        try:
            crash.arm(count)
            run()
        except BaseException:
            os._exit(1)
        os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, -signal.SIGKILL), "the switch failed"
    return status != 0
