"""Where a captured record comes from."""

from __future__ import annotations

from changes_kit import changes
from headwater.capture import record_headers
from headwater.capture.change import READ


def test_each_change_tells_its_transaction() -> None:
    told = record_headers.of_changes(changes(("insert", 1, "a"), ("delete", 2, None)))
    assert dict(told[1].as_py()) == {
        "op": b"delete",
        "position": b"00000001",
        "transaction": b"t1",
        "index": b"0",
        "committed": b"1000000",
    }
    assert dict(told[0].as_py())["op"] == b"insert"


def test_a_row_of_a_snapshot_says_so() -> None:
    told = record_headers.of_snapshot(READ, "0/1", 2)
    assert [dict(each) for each in told.to_pylist()] == [
        {"op": b"read", "position": b"0/1", "snapshot": b"true"}
    ] * 2
