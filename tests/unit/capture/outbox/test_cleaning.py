"""Rows of an outbox are deleted behind what the log has of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import headwater
from changes_kit import CUSTOMERS, execute
from headwater import topic as topics
from headwater.capture.outbox import cleaning
from headwater.capture.outbox.captured_outbox import CapturedOutbox
from headwater.capture.outbox.cleaning import OutboxCleaning
from headwater.capture.sqlite.source import SqliteSource
from headwater.log import Log

OUTBOX = CapturedOutbox("customers", topics.create("events", "n BIGINT"), delete=True)


@pytest.fixture
def log() -> Iterator[Log]:
    with headwater.open("memory:") as opened:
        opened.create_topic("events", "n BIGINT")
        with opened.producer("events", id="capture.crm") as producer:
            for id in range(10):
                producer.send({"n": id}, headers={"row": f'{{"id":{id}}}'})
        yield opened


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "crm.db"
    execute(path, "CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT)")
    execute(path, *(("INSERT INTO customers VALUES (?, 'a')", (id,)) for id in range(12)))
    return path


def test_rows_go_in_parts_and_the_others_stay(log: Log, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cleaning, "ROWS", 3)
    with SqliteSource(file, "crm") as source:
        made = OutboxCleaning(source, log, OUTBOX, ("capture.crm",))
        assert made.clean(CUSTOMERS, {0: 2}) == {0: 10}
        assert made.clean(CUSTOMERS, {0: 10}) == {0: 10}
        left = source._db.rows("SELECT id FROM customers ORDER BY id")
    assert [id for (id,) in left] == [0, 1, 10, 11]


def test_where_others_are_in_the_way_it_is_as_far_as_before(log: Log, file: Path) -> None:
    class Busy(SqliteSource):
        def delete_rows(self, table: str, keys: object) -> bool:
            return False

    with Busy(file, "crm") as source:
        assert OutboxCleaning(source, log, OUTBOX, ("capture.crm",)).clean(CUSTOMERS, {0: 2}) == {0: 2}
