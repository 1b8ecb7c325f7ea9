"""How a capture begins: from its state, its tables and its topics."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

import headwater
from changes_kit import CAPTURED, execute
from headwater import topic as topics
from headwater.capture.beginning import Beginning
from headwater.capture.outbox.captured_outbox import CapturedOutbox
from headwater.capture.sqlite.source import SqliteSource
from headwater.capture.state import SnapshotProgress, StateTopic
from headwater.errors import SourceRefused
from headwater.log import Log

OUTBOX = CapturedOutbox("outbox", topics.create("events", "id BIGINT"))


@pytest.fixture
def source(tmp_path: Path) -> Iterator[SqliteSource]:
    file = tmp_path / "crm.db"
    execute(file, "CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT)")
    execute(file, "CREATE TABLE outbox (id INTEGER PRIMARY KEY)")
    with SqliteSource(file, "crm") as opened:
        yield opened


@pytest.fixture
def log() -> Iterator[Log]:
    with headwater.open("memory:") as opened:
        yield opened


def begun(source: SqliteSource, log: Log) -> Beginning:
    made = Beginning(source, log, "crm", [CAPTURED, OUTBOX])
    with StateTopic(log, "crm") as topic, ExitStack() as opened:
        made.begin(topic)
        made.open_outboxes(opened)
        made.begin_anew(made.open_tables(opened))
        topic.save(made.state)
    return made


def test_a_new_capture_has_everything_to_read(source: SqliteSource, log: Log) -> None:
    state = begun(source, log).state
    assert state.snapshots == {"outbox": SnapshotProgress()}
    assert state.outboxes["outbox"].since == {0: 0}
    assert {topic.name for topic in log.topics()} == {"crm.capture", "customers", "events"}


def test_a_topic_with_records_of_nobody_known_is_read_anew(source: SqliteSource, log: Log) -> None:
    CAPTURED.declare(log)
    OUTBOX.declare(log)
    for topic in ("customers", "events"):
        with log.producer(topic) as somebody:
            somebody.send({"id": 7})
    state = begun(source, log).state
    assert state.resnapshot == ("customers",)
    assert state.outboxes["outbox"].since == {0: 1}


def test_it_goes_on_where_it_was(source: SqliteSource, log: Log) -> None:
    first = begun(source, log).state
    assert begun(source, log).state == first


def test_nothing_is_made_for_what_cannot_be_captured(source: SqliteSource, log: Log) -> None:
    lost = CapturedOutbox("lost", topics.create("events", "id BIGINT"))
    with pytest.raises(SourceRefused, match='no table "lost"'):
        Beginning(source, log, "crm", [CAPTURED, lost])
    assert log.topics() == []
