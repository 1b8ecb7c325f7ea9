"""Chunks of a snapshot, and what the stream changes meanwhile."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from changes_kit import CAPTURED, changes
from headwater.capture import snapshot
from headwater.capture.snapshot import PendingSnapshots
from headwater.capture.sqlite.source import SqliteSource
from headwater.capture.state import SnapshotProgress

NOTHING = SnapshotProgress()


@pytest.fixture
def source(tmp_path: Path) -> Iterator[SqliteSource]:
    file = tmp_path / "crm.db"
    db = sqlite3.connect(file)
    with db:
        db.execute("CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT)")
        db.executemany("INSERT INTO customers VALUES (?, ?)", [(id, "a") for id in range(5)])
    db.close()
    with SqliteSource(file, "crm") as opened:
        opened.begin(["customers"], None)
        yield opened


def ids(rows: object) -> list[int]:
    return [row["id"] for row in rows.to_pylist()]  # type: ignore[attr-defined]


def test_keys_that_the_stream_has_changed_are_left_out(source: SqliteSource) -> None:
    waiting = PendingSnapshots(source, ["customers"])
    waiting.read(NOTHING)
    waiting.note(changes(("update", 1, "b"), ("delete", 3, None)), CAPTURED)
    waiting.note(changes(("update", 2, "b")), replace(CAPTURED, table="others"))
    assert waiting.due(source.end())
    chunk = waiting.take(CAPTURED)
    assert (ids(chunk.rows), chunk.last) == ([0, 2, 4], True)
    assert waiting.pending == []
    assert not waiting.due(source.end())


def test_what_changed_before_a_chunk_was_read_is_no_matter(source: SqliteSource) -> None:
    waiting = PendingSnapshots(source, ["customers"])
    waiting.note(changes(("update", 1, "b")), CAPTURED)
    waiting.read(NOTHING)
    assert ids(waiting.take(CAPTURED).rows) == [0, 1, 2, 3, 4]


def test_chunks_follow_each_other_until_the_last(
    source: SqliteSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot, "CHUNK_ROWS", 2)
    waiting, progress, found = PendingSnapshots(source, ["customers"]), NOTHING, list[int]()
    while waiting.pending:
        waiting.read(progress)
        chunk = waiting.take(CAPTURED)
        found += ids(chunk.rows)
        progress = SnapshotProgress(chunk.after or progress.after)
    assert found == [0, 1, 2, 3, 4]


def test_a_truncation_leaves_nothing_of_a_chunk(source: SqliteSource) -> None:
    waiting = PendingSnapshots(source, ["customers"])
    waiting.read(NOTHING)
    waiting.note_truncation("customers")
    assert ids(waiting.take(CAPTURED).rows) == []


def test_rows_that_do_not_fit_keep_their_reasons(source: SqliteSource) -> None:
    waiting = PendingSnapshots(source, ["customers"])
    waiting.read(NOTHING)
    assert waiting._chunk is not None
    waiting._chunk = replace(waiting._chunk, unfit={1: "odd", 4: "odder"})
    waiting.note(changes(("update", 0, "b"), ("update", 1, "b")), CAPTURED)
    assert waiting.take(CAPTURED).unfit == {2: "odder"}


def test_a_table_can_be_left_out_and_another_added(source: SqliteSource) -> None:
    waiting = PendingSnapshots(source, ["customers"])
    waiting.read(NOTHING)
    waiting.drop("customers")
    waiting.add("orders")
    waiting.add("orders")
    assert waiting.pending == ["orders"]
    assert not waiting.due(source.end())
