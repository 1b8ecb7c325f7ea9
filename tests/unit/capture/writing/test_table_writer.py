"""Changes and snapshots of a table, in its topics."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import headwater
from changes_kit import CAPTURED, CUSTOMERS, batch, changes, newest
from headwater.capture.change import SnapshotChunk, Transactions, Truncation
from headwater.capture.writing.table_writer import TableWriter
from headwater.capture.writing.topic_writer import UnfitRow
from headwater.log import Log

EMPTIED = Truncation(CUSTOMERS, Transactions(("t8",), ("0/8",), np.array([8_000_000])), 0, 3)


@pytest.fixture
def log() -> Iterator[Log]:
    with headwater.open("memory:") as opened:
        yield opened


def test_changes_become_records_with_their_commit_time(log: Log) -> None:
    with TableWriter(log, "crm", CAPTURED, 0) as writer:
        assert (
            writer.write(
                changes(("insert", 1, "a"), ("update", 1, "b"), ("insert", 2, "c"), ("delete", 2, None))
            )
            == []
        )
        assert writer.sequence == 4
    rows = [row for part in log.read("customers", meta=True) for row in part.to_pylist()]
    assert newest(log) == {1: "b"}
    assert [row["committed_at"].second for row in rows[:3]] == [0, 1, 2]
    assert rows[3]["_occurred"].second == 3
    assert dict(rows[1]["_headers"])["op"] == b"update"


def test_what_is_delivered_again_is_stored_once(log: Log) -> None:
    delivered = changes(("insert", 1, "a"), ("insert", 2, "b"), ("update", 1, "c"))
    with TableWriter(log, "crm", CAPTURED, 0) as writer:
        writer.write(delivered)
    with TableWriter(log, "crm", CAPTURED, 1) as again:  # as if the state had been saved behind the first
        again.write(delivered.part(1, 3))
        again.write(changes(("delete", 2, None), first=3))
    assert sum(len(part) for part in log.read("customers")) == 4
    assert newest(log) == {1: "c"}


def test_a_row_that_does_not_fit_keeps_its_number(log: Log) -> None:
    narrow = replace(
        CAPTURED, schema=pa.schema([pa.field("id", pa.int64(), False), pa.field("name", pa.int64())])
    )
    with TableWriter(log, "crm", narrow, 0) as writer:
        bad = writer.write(changes(("insert", 1, "10"), ("insert", 2, "ten"), ("insert", 3, "30")))
        assert [each.row for each in bad] == [1]
        assert "ten" in bad[0].reason
        assert writer.sequence == 3
    rows = [row for part in log.read("customers", meta=True) for row in part.to_pylist()]
    assert [(row["id"], row["name"], row["_sequence"]) for row in rows] == [(1, 10, 0), (3, 30, 2)]


def test_rows_that_the_source_cannot_tell_are_left_out(log: Log) -> None:
    told = replace(changes(("insert", 1, "a"), ("insert", 2, None)), unfit={1: 'column "name" is NaN'})
    with TableWriter(log, "crm", CAPTURED, 0) as writer:
        assert writer.write(told) == [UnfitRow(1, 'column "name" is NaN', 1)]
    assert newest(log) == {1: "a"}


def test_a_snapshot_comes_behind_what_was_written(log: Log) -> None:
    with TableWriter(log, "crm", CAPTURED, 0) as writer:
        writer.write(changes(("insert", 1, "old")))
        assert writer.write_chunk(SnapshotChunk(batch([(1, "new"), (2, "b")]), "0/7", last=True)) == []
        writer.write(changes(("delete", 2, None), first=1))
    assert newest(log) == {1: "new"}


def test_a_truncation_deletes_every_key(log: Log) -> None:
    with TableWriter(log, "crm", CAPTURED, 0) as writer:
        writer.write(changes(("insert", 1, "a"), ("insert", 2, "b")))
        writer.truncate(EMPTIED)
        writer.write(changes(("insert", 2, "again"), first=2))
    assert newest(log) == {2: "again"}


def test_the_history_has_every_change_with_the_row_before(log: Log) -> None:
    first, then = (
        changes(("insert", 1, "a"), ("insert", 2, "b")),
        changes(("update", 1, "c"), ("delete", 2, None), first=2),
    )
    with TableWriter(log, "crm", replace(CAPTURED, history=True), 0) as writer:
        writer.write(first)
        writer.write(replace(then, before=batch([(1, "a"), (2, "b")])))
    rows = [row for part in log.read("customers.changes") for row in part.to_pylist()]
    names = [
        (row["operation"], row["before"] and row["before"]["name"], row["after"] and row["after"]["name"])
        for row in rows
    ]
    assert names == [
        ("insert", None, "a"),
        ("insert", None, "b"),
        ("update", "a", "c"),
        ("delete", "b", None),
    ]
    assert [row["transaction"] for row in rows] == ["t0", "t1", "t2", "t3"]


NUMBERS = replace(
    CAPTURED, schema=pa.schema([("id", pa.decimal128(20, 0)), ("name", pa.int32())]), history=True
)
"""The table with wider keys, and names that have to be read."""


def history(log: Log) -> list[tuple[object, ...]]:
    rows = [row for part in log.read("customers.changes") for row in part.to_pylist()]
    name = lambda row: row and row["name"]  # noqa: E731
    return [(int(row["id"]), row["operation"], name(row["before"]), name(row["after"])) for row in rows]


def test_the_topic_of_changes_has_what_fits_in_the_declared_types(log: Log) -> None:
    told = changes(("insert", 1, "1"), ("insert", 2, "two"), ("update", 2, "2"), ("update", 1, "3"))
    befores = batch([(1, None), (2, None), (2, "two"), (1, "1")])
    with TableWriter(log, "crm", NUMBERS, 0) as writer:
        assert [each.row for each in writer.write(replace(told, before=befores))] == [1]
        writer.write(changes(("insert", 5, "5"), first=4))
    assert history(log) == [
        (1, "insert", None, 1),
        (2, "update", None, 2),
        (1, "update", 1, 3),
        (5, "insert", None, 5),
    ]


def test_the_topic_of_changes_tells_of_a_truncation(log: Log) -> None:
    with TableWriter(log, "crm", NUMBERS, 0) as writer:
        writer.write(changes(("insert", 1, "1"), ("insert", 2, "2"), ("delete", 1, None)))
        writer.truncate(EMPTIED)
        writer.truncate(EMPTIED)  # there is nothing left
        writer.write(changes(("insert", 2, "9"), first=9))
    assert newest(log) == {2: 9}
    assert history(log)[-2:] == [(2, "truncate", None, None), (2, "insert", None, 9)]
    row = [row for part in log.read("customers.changes") for row in part.to_pylist()][-2]
    assert (row["committed_at"].second, row["position"], row["transaction"], row["index"]) == (
        8,
        "0/8",
        "t8",
        3,
    )
