"""A topic is read as somebody declares it: computed columns, times and producers, on every backend alike."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from contract_kit import Backend, rows_of
from headwater import Log, topic
from headwater.errors import TopicError, UnreadableRecord

SCHEMA = "device STRING, at BIGINT"
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
MILLIS = int(NOON.timestamp()) * 1000


@pytest.fixture
def filled(log: Log, name: str) -> str:
    log.create_topic(name, SCHEMA, key="device")
    with log.producer(name, id="gateway") as producer:
        producer.send_batch([{"device": "a", "at": MILLIS + 2}, {"device": "b", "at": MILLIS + 9}])
        producer.flush()
        producer.send({"device": "a", "at": MILLIS + 5}, headers={"h": b"1"})
        producer.send({"device": "b", "at": None})
    return name


def test_computed_columns_are_read_by_who_declares_them_alone(
    backend: Backend, log: Log, filled: str
) -> None:
    metadata = ["_offset", "_key", "_headers", "_timestamp AS stored"]
    declared = topic.create(filled, SCHEMA, event_time="timestamp_millis(at)", metadata=metadata)
    other = backend.again()
    other.read_as(declared)
    rows = rows_of(other, filled)
    assert [row["event_time"] for row in rows] == [
        *(NOON + timedelta(milliseconds=n) for n in (2, 9, 5)), None,
    ]  # fmt: skip
    assert [row["key"] for row in rows] == [b"a", b"b", b"a", b"b"]
    assert [row["headers"] for row in rows] == [None, None, [("h", b"1")], None]
    told = rows_of(log, filled, meta=True)
    assert [row["offset"] for row in rows] == [row["_offset"] for row in told]
    assert [row["stored"] for row in rows] == [row["_received"] for row in told]
    assert list(rows_of(log, filled)[0]) == ["device", "at"]


def test_all_metadata_comes_with_what_is_computed(backend: Backend, filled: str) -> None:
    other = backend.again()
    other.read_as(topic.create(filled, SCHEMA, event_time="timestamp_millis(at) AS t", metadata=["_offset"]))
    rows = rows_of(other, filled, meta=True)
    assert [row["_occurred"] for row in rows] == [row["t"] for row in rows]
    assert [row["offset"] for row in rows] == [row["_offset"] for row in rows]


def test_ranges_tell_the_newest_time_that_is_computed(backend: Backend, filled: str) -> None:
    other = backend.again()
    other.read_as(topic.create(filled, SCHEMA, event_time="timestamp_millis(at)"))
    ranges = list(other.appended_ranges(filled, 0, 0))
    assert max(each.newest for each in ranges if each.newest) == (MILLIS + 9) * 1000
    assert {each.producer for each in ranges} <= {"gateway", ""}


def test_each_producer_that_a_column_names_has_its_own_ranges(backend: Backend, filled: str) -> None:
    other = backend.again()
    other.read_as(topic.create(filled, SCHEMA, event_time="timestamp_millis(at)", producer="device"))
    newest: dict[str, int] = {}
    ranges = list(other.appended_ranges(filled, 0, 0))
    for each in ranges:
        newest[each.producer] = max(newest.get(each.producer, 0), each.newest or 0)
    assert newest["a"] == (MILLIS + 5) * 1000
    assert newest["b"] == (MILLIS + 9) * 1000
    assert ranges[-1].end == other.resolve(filled, "latest").offsets[0]


def test_a_time_that_cannot_be_computed_is_an_unreadable_record(
    backend: Backend, log: Log, name: str
) -> None:
    log.create_topic(name, "day STRING")
    with log.producer(name) as producer:
        producer.send_batch([{"day": "2026-01-01"}, {"day": None}, {"day": "never"}, {"day": "2026-01-02"}])
    other = backend.again()
    other.read_as(topic.create(name, "day STRING", event_time="to_timestamp(day)"))
    found: list[str | None] = []
    with pytest.raises(UnreadableRecord, match="cannot be read") as unreadable:
        for batch in other.read(name):
            found += batch.column("day").to_pylist()
    assert found == ["2026-01-01", None]
    assert unreadable.value.value == b'{"day":"never"}'
    assert "day is never" in str(unreadable.value)
    after = other.read(name, start=unreadable.value.offset + 1)
    assert [day for batch in after for day in batch.column("day").to_pylist()] == ["2026-01-02"]
    assert max(each.newest or 0 for each in other.appended_ranges(name, 0, 0)) == 1_767_312_000_000_000


def test_one_topic_declared_in_two_ways_is_refused(log: Log, filled: str) -> None:
    log.read_as(topic.create(filled, SCHEMA, event_time="timestamp_millis(at)"))
    with pytest.raises(TopicError, match="two ways"):
        log.read_as(topic.create(filled, SCHEMA, event_time="timestamp_seconds(at)"))


def test_a_topic_is_not_made_with_what_is_computed(log: Log, name: str) -> None:
    with pytest.raises(TopicError, match="it stores columns"):
        log.create_topic(name, SCHEMA, event_time="timestamp_millis(at)")
