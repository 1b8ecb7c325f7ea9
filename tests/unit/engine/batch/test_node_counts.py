"""What a node has done, in numbers: notes of buckets add up, and the state of a bucket is its newest."""

from __future__ import annotations

from headwater.engine.batch.node_counts import NodeCounts


def note(bucket: int, state: int) -> dict[str, int]:
    counted = dict.fromkeys(("rows", "late", "duplicates", "hits", "loads", "read"), 1)
    return {**counted, "bucket": bucket, "state": state}


def test_notes_of_buckets_add_up_and_the_newest_state_of_each_counts() -> None:
    counts = NodeCounts()
    for each in (note(0, 10), note(1, 20), note(0, 30)):
        counts.note(each)
    assert (counts.rows, counts.late, counts.duplicates) == (3, 3, 3)
    assert (counts.hits, counts.loads, counts.read) == (3, 3, 3)
    assert counts.states == {0: 30, 1: 20}
