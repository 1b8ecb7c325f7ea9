"""Rows of an outbox as events of its topic."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import headwater
from changes_kit import CUSTOMERS, batch, changes
from headwater import topic as topics
from headwater.capture.change import SnapshotChunk
from headwater.capture.outbox.captured_outbox import CapturedOutbox
from headwater.capture.outbox.event_writer import EventWriter
from headwater.log import Log

DECLARED = topics.create("events", "n BIGINT, committed_at TIMESTAMP", key="n", event_time="committed_at")
CAPTURED = CapturedOutbox("customers", DECLARED, "name")


@pytest.fixture
def log() -> Iterator[Log]:
    with headwater.open("memory:") as opened:
        yield opened


def writer(log: Log, sequence: int | None = None) -> EventWriter:
    return EventWriter(log, "crm", CAPTURED, sequence, CUSTOMERS)


def events(log: Log) -> list[dict[str, Any]]:
    return [row for part in log.read("events", meta=True) for row in part.to_pylist()]


def numbers(log: Log) -> list[int]:
    return [row["n"] for row in events(log)]


def test_insertions_are_events_and_take_numbers(log: Log) -> None:
    with writer(log) as made:
        assert made.is_first
        assert (
            made.write(
                changes(
                    ("insert", 1, '{"n": 10}'),
                    ("update", 1, '{"n": 11}'),
                    ("delete", 1, None),
                    ("insert", 2, '{"n": 20}'),
                )
            )
            == []
        )
        assert made.sequence == 2
    first, second = events(log)
    assert (first["n"], second["n"], second["committed_at"].second) == (10, 20, 3)
    assert dict(second["_headers"])["row"] == b'{"id":2}'


def test_what_is_delivered_again_is_told_once(log: Log) -> None:
    told = changes(("insert", 1, '{"n": 1}'), ("delete", 1, None), ("insert", 2, '{"n": 2}'))
    with writer(log) as made:
        made.write(told)
    with writer(log, 1) as again:  # as if the state had been saved behind the first
        again.write(told.part(1, 3))
        again.write(changes(("insert", 3, '{"n": 3}'), first=3))
        assert not again.is_first
    assert numbers(log) == [1, 2, 3]


def test_what_does_not_fit_is_named_and_keeps_its_number(log: Log) -> None:
    told = changes(
        ("delete", 9, None),
        ("insert", 1, '{"n": 1}'),
        ("insert", 2, "no JSON"),
        ("insert", 3, '{"n": 1.5}'),
        ("insert", 4, "{}"),
        ("insert", 5, None),
        ("insert", 6, '{"n": 6}'),
    )
    with writer(log) as made:
        bad = made.write(told)
        assert made.sequence == 6
    assert [each.row for each in bad] == [2, 3, 4, 5]
    assert all(each.reason for each in bad)
    assert numbers(log) == [1, 6]


def test_a_chunk_has_the_rows_that_are_no_events_yet(log: Log) -> None:
    with writer(log) as made:
        made.expect_snapshot(made.end())
        made.write(changes(("insert", 3, '{"n": 3}')))
        found = [(1, '{"n": 1}'), (2, "bad"), (3, '{"n": 3}')]
        bad = made.write_chunk(SnapshotChunk(batch(found), "00000009", last=False, after=(3,)))
        assert [each.row for each in bad] == [1]
        made.write_chunk(SnapshotChunk(batch([(4, '{"n": 4}')]), "00000009", last=True))
    assert numbers(log) == [3, 1, 4]
    assert dict(events(log)[1]["_headers"])["snapshot"] == b"true"


def test_a_snapshot_that_goes_on_does_not_tell_again_what_the_topic_has(log: Log) -> None:
    with log.producer(
        log.create_topic("events", DECLARED.schema, key="n", event_time="committed_at").name
    ) as old:
        old.send({"n": 7}, headers={"row": '{"id":1}'})  # of another time: it does not count
    with writer(log) as made:
        since = made.end()
        made.expect_snapshot(since)
        made.write_chunk(SnapshotChunk(batch([(1, '{"n": 1}')]), "00000009", last=False, after=(1,)))
    with writer(log) as again:
        again.expect_snapshot(since)
        found = batch([(1, '{"n": 1}'), (2, '{"n": 2}')])
        again.write_chunk(SnapshotChunk(found, "00000009", last=True))
    assert numbers(log) == [7, 1, 2]


def test_a_mark_is_written_behind_all_events_by_whoever_has_written_some(log: Log) -> None:
    with writer(log) as made:
        made.write(changes(("insert", 1, '{"n": 1}')))
        made.mark(5_000_000)
        ranges = list(log.appended_ranges("events", 0, 0))
    assert [each.mark for each in ranges] == [False, True]
    assert ranges[1].producer == "capture.crm"
