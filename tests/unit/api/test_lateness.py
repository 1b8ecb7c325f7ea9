"""How late rows come, judged by what is given and what is declared."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

import headwater
from headwater import Pipeline
from headwater.api.lateness import LatenessSetting, timed_sources
from headwater.errors import UsageError


def test_lateness_judges_what_is_given_and_what_is_declared(tmp_path: Path) -> None:
    shop = Pipeline("shop", log=f"file:{tmp_path}/data")
    shop.source("orders", "at TIMESTAMP", event_time="at", lateness="3 minutes")
    with headwater.open(shop.log) as log:
        log.create_topic("orders", "at TIMESTAMP", event_time="at")
        with log.producer("orders", id="till") as producer:
            for second in (10, 20, 15):
                producer.send_batch([{"at": second * 1_000_000}])
                producer.flush()
        found = headwater.lateness(log, "orders", pipeline=shop, judged=["4 seconds"])
    judged = {each.text: (each.late, each.declared) for each in found.settings}
    assert judged["4 seconds"] == (1, False)
    assert judged["3 minutes"] == (0, True)
    assert found.to_dict()["advice"] == "5 seconds"


def test_a_time_and_a_producer_that_a_source_computes_are_judged_as_it_declares_them(tmp_path: Path) -> None:
    web = Pipeline("web", log=f"file:{tmp_path}/data")
    web.source("events", "device STRING, at BIGINT", event_time="timestamp_millis(at)", producer="device")
    with headwater.open(web.log) as log:
        log.create_topic("events", "device STRING, at BIGINT")
        with pytest.raises(UsageError, match="no event time") as refused:
            headwater.lateness(log, "events")
        assert "--pipeline" in str(refused.value.hint)
        with log.producer("events") as producer:
            for device, second in [("a", 20), ("b", 10), ("a", 30), ("b", 14), ("b", 13)]:
                producer.send_batch([{"device": device, "at": second * 1_000}])
                producer.flush()
        found = headwater.lateness(log, "events", pipeline=web)
    # One clock for both devices would have made b's rows late by up to 17 seconds.
    assert (found.rows, found.quantiles["all"], found.without_time) == (5, timedelta(seconds=10), 0)


def test_a_source_without_event_time_says_nothing_about_lateness() -> None:
    shop = Pipeline("shop")
    shop.source("orders", "at TIMESTAMP")
    shop.source("clicks", "at TIMESTAMP", event_time="at", lateness="1 minute")
    assert timed_sources(shop, "orders") == []
    assert [each.name for each in timed_sources(shop, "clicks")] == ["clicks"]


@pytest.mark.parametrize(
    ("length", "text"), [(timedelta(), "0 seconds"), (timedelta(minutes=3), "3 minutes")]
)
def test_a_setting_is_told_as_a_source_declares_it(length: timedelta, text: str) -> None:
    assert LatenessSetting(length, late=2, declared=True).to_dict() == {
        "lateness": text,
        "late": 2,
        "declared": True,
    }


def test_a_length_that_is_none_is_refused() -> None:
    with headwater.open("memory:") as log:
        log.create_topic("orders", "at TIMESTAMP", event_time="at")
        with pytest.raises(UsageError, match="soon"):
            headwater.lateness(log, "orders", judged=["soon"])


def test_rows_without_a_time_are_counted_apart() -> None:
    with headwater.open("memory:") as log:
        log.create_topic("orders", "at TIMESTAMP", event_time="at")
        with log.producer("orders") as producer:
            producer.send_batch([{"at": 1_000_000}, {"at": None}])
        found = headwater.lateness(log, "orders")
    assert (found.rows, found.without_time) == (1, 1)
