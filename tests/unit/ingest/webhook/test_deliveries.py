"""Deliveries as events, each once."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from datetime import timedelta

import pytest

import headwater
from headwater import Log
from headwater.errors import Fenced, RowError
from headwater.ingest.webhook.deliveries import EVENTS, Deliveries
from headwater.ingest.webhook.receiver import WebhookDelivery

WEEK = timedelta(days=7)


@pytest.fixture
def log() -> Iterator[Log]:
    with headwater.open("memory:") as opened:
        opened.create_topic("hooks", EVENTS, event_time="received", partitions=2)
        opened.create_topic("orders", "id BIGINT NOT NULL")
        yield opened


def opened(log: Log, topic: str = "hooks", remember: timedelta = WEEK) -> Deliveries:
    return Deliveries(log, log.topic(topic), "hook", remember)


def test_a_repeat_makes_no_second_event_also_after_a_restart(log: Log) -> None:
    for number, repeated in enumerate((False, True)):
        with opened(log) as hook:
            assert hook.add(WebhookDelivery("one", "paid", b'{"n": 1}')).is_duplicate == repeated
            assert hook.add(WebhookDelivery("one", "paid", b'{"n": 1}')).is_duplicate
            assert not hook.add(WebhookDelivery(f"other {number}", None, b"{}")).is_duplicate
    rows = [row for batch in log.read("hooks") for row in batch.to_pylist()]
    assert sorted(row["delivery"] for row in rows) == ["one", "other 0", "other 1"]
    (event,) = (row for row in rows if row["delivery"] == "one")
    assert (event["type"], json.loads(event["body"])) == ("paid", {"n": 1})


def test_members_of_an_event_become_columns_of_a_topic_that_is_there(log: Log) -> None:
    with opened(log, "orders") as hook:
        hook.add(WebhookDelivery("one", None, b'{"id": 7, "more": true}'))
        with pytest.raises(RowError):
            hook.add(WebhookDelivery("two", None, b'{"id": "x"}'))
        assert not hook.add(WebhookDelivery("two", None, b'{"id": 8}')).is_duplicate, (
            "nothing was written of it"
        )
    assert [row["id"] for batch in log.read("orders") for row in batch.to_pylist()] == [7, 8]


def test_deliveries_of_one_id_that_come_at_once_make_one_event(log: Log) -> None:
    with opened(log) as hook:
        threads = [
            threading.Thread(target=hook.add, args=(WebhookDelivery(f"id {n % 5}", None, b"{}"),))
            for n in range(40)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sum(map(len, log.read("hooks"))) == 5


def test_an_id_is_forgotten_after_the_time_that_was_asked_for(log: Log) -> None:
    with opened(log, remember=timedelta(milliseconds=1)) as hook:
        hook.add(WebhookDelivery("one", None, b"{}"))
        time.sleep(0.01)
        hook.add(WebhookDelivery("two", None, b"{}"))
        assert not hook.add(WebhookDelivery("one", None, b"{}")).is_duplicate


def test_who_takes_over_fences_the_one_before(log: Log) -> None:
    first = opened(log)
    with opened(log), pytest.raises(Fenced):
        first.add(WebhookDelivery("one", None, b"{}"))
