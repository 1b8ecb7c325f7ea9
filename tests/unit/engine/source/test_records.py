"""The records of a partition as nodes see them: a deletion of a table tells when it happened, too."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from headwater.engine.source.records import Span, records
from headwater.errors import TopicReplaced
from headwater.log import Log
from headwater.log.open import open as open_log

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
LATER = datetime(2026, 1, 1, 13, tzinfo=UTC)


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    with open_log(f"file:{tmp_path}") as log:
        log.create_topic(
            "people", "id BIGINT, city STRING, at TIMESTAMP", key="id", event_time="at", cleanup="compact"
        )
        with log.producer("people") as producer:
            producer.send({"id": 1, "city": "Bern", "at": NOON})
            producer.delete(1, occurred=LATER)
            producer.delete(2)
        yield log


def span(log: Log, start: int, end: int) -> Span:
    return Span("people", log.topic("people").id, 0, start, end)


def read(log: Log, start: int, end: int, *, meta: bool = False) -> pa.Table:
    return pa.Table.from_batches(records(log, span(log, start, end), meta=meta))


def test_a_deletion_has_the_time_that_its_producer_said(log: Log) -> None:
    rows = read(log, 0, 2).to_pylist()
    assert [(row["at"], row["_deleted"]) for row in rows] == [(NOON, False), (LATER, True)]
    assert rows[1]["city"] is None


def test_a_deletion_of_which_nothing_was_said_has_the_time_of_its_receipt(log: Log) -> None:
    [row] = read(log, 2, 3, meta=True).to_pylist()
    assert row["at"] == row["_received"]
    assert row["_deleted"]


def test_metadata_comes_only_where_it_is_asked_for(log: Log) -> None:
    assert read(log, 0, 3).schema.names == ["id", "city", "at", "_deleted"]
    assert "_offset" in read(log, 0, 3, meta=True).schema.names


def test_a_topic_that_was_made_again_is_not_read_in_the_place_of_the_one_meant(log: Log) -> None:
    meant = span(log, 0, 3)
    log.delete_topic("people")
    log.create_topic("people", "id BIGINT, at TIMESTAMP", key="id", event_time="at", cleanup="compact")
    with pytest.raises(TopicReplaced):
        list(records(log, meant))
