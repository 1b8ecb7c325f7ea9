"""One plan for all inputs of a query: each goes on by itself, and one that is gone keeps its place."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headwater.engine.source.offset_planner import OffsetPlanner
from headwater.log import Log
from headwater.log.open import open as open_log


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    with open_log(f"file:{tmp_path}") as log:
        for topic in ("orders", "clicks"):
            log.create_topic(topic, "id BIGINT")
        yield log


def planner(log: Log, *topics: str) -> OffsetPlanner:
    return OffsetPlanner({topic: {"url": log.url, "topic": topic} for topic in topics})


def send(log: Log, topic: str, count: int) -> None:
    with log.producer(topic) as producer:
        producer.send_batch([{"id": n} for n in range(count)])


def planned(log: Log, start: dict[str, Any], *topics: str) -> dict[str, Any]:
    made = planner(log, *topics)
    try:
        return made.latestOffset(start or made.initialOffset(), None)
    finally:
        made.stop()


def test_each_input_is_planned_by_its_own_end(log: Log) -> None:
    send(log, "orders", 3)
    send(log, "clicks", 5)
    found = planned(log, {}, "orders", "clicks")
    assert {name: each["offsets"] for name, each in found.items()} == {"orders": {"0": 3}, "clicks": {"0": 5}}


def test_an_input_that_is_planned_no_longer_keeps_its_place(log: Log) -> None:
    send(log, "orders", 3)
    before = planned(log, {}, "orders", "clicks")
    send(log, "clicks", 1)
    send(log, "orders", 1)
    after = planned(log, before, "clicks")
    assert after["orders"] == before["orders"]
    assert after["clicks"] != before["clicks"]


def test_an_input_that_is_new_begins_at_its_beginning(log: Log) -> None:
    send(log, "orders", 2)
    send(log, "clicks", 2)
    before = planned(log, {}, "orders")
    assert planned(log, before, "orders", "clicks") == planned(log, {}, "orders", "clicks")


def test_nothing_is_read_and_no_task_is_made(log: Log) -> None:
    made = planner(log, "orders")
    start = made.initialOffset()
    send(log, "orders", 2)
    assert made.partitions(start, made.latestOffset(start, None)) == []
    made.stop()
