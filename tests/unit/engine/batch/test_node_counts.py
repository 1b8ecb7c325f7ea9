"""What a node has done, in numbers: notes of buckets add up, and the state of a bucket is its newest."""

from __future__ import annotations

from typing import Any

from headwater.engine.batch.node_counts import NodeCounts


def note(bucket: int, state: int) -> dict[str, Any]:
    counted = dict.fromkeys(("rows", "late", "duplicates", "hits", "loads", "read"), 1)
    return {**counted, "bucket": bucket, "state": state, "held": state // 10, "keys": {}}


def test_notes_of_buckets_add_up_and_the_newest_state_of_each_counts() -> None:
    counts = NodeCounts()
    for each in (note(0, 10), note(1, 20), note(0, 30)):
        counts.note(each)
    assert (counts.rows, counts.late, counts.duplicates) == (3, 3, 3)
    assert (counts.hits, counts.loads, counts.read) == (3, 3, 3)
    assert counts.states == {0: 30, 1: 20}
    assert counts.held == {0: 3, 1: 2}


def test_the_most_frequent_keys_are_those_of_late() -> None:
    counts = NodeCounts()
    assert counts.largest_keys() == ()
    for _ in range(20):
        counts.note({**note(0, 1), "rows": 1_000, "keys": {"a": 400, "b": 50}})
    assert counts.largest_keys(1) == (("a", 0.8),)
    for _ in range(200):
        counts.note({**note(0, 1), "rows": 1_000, "keys": {"c": 250}})
    (first, share), *_ = counts.largest_keys()
    assert (first, round(share, 1)) == ("c", 0.5)
