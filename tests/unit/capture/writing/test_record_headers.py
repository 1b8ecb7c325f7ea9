"""Where a captured record comes from."""

from __future__ import annotations

import pyarrow as pa

from changes_kit import changes
from headwater.capture.change import READ
from headwater.capture.writing import record_headers


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


def test_columns_say_more_where_they_have_a_value() -> None:
    told = record_headers.of_snapshot(READ, "0/1", 3)
    columns = {"kind": pa.array(["a", None, "c"]), "n": pa.array([1, 2, None]), "raw": pa.array([b"x"] * 3)}
    found = [dict(each) for each in record_headers.with_columns(told, columns).to_pylist()]
    assert [(each.get("kind"), each.get("n"), each["raw"]) for each in found] == [
        (b"a", b"1", b"x"),
        (None, b"2", b"x"),
        (b"c", None, b"x"),
    ]
    assert [each["position"] for each in found] == [b"0/1"] * 3
    assert len(record_headers.with_columns(told.slice(0, 0), {"kind": pa.array([], pa.string())})) == 0
