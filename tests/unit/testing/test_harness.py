"""The harness around a pipeline: a place of its own, and what is sent there; nodes are run in tests/spark."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from headwater import Pipeline
from headwater.durations import micros
from headwater.errors import HeadwaterError
from headwater.testing.harness import Harness, _with_own_views

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)


@pytest.fixture
def shop(tmp_path: Path) -> Pipeline:
    """Inputs alone, for which no Spark is asked."""
    made = Pipeline("shop", log=f"file:{tmp_path}/data")
    made.source("orders", "id BIGINT, at TIMESTAMP", event_time="at", topic="shop_orders")
    made.table("customers", "id BIGINT, name STRING", key="id")
    return made


def test_nothing_outside_of_its_own_directory_is_touched(shop: Pipeline, tmp_path: Path) -> None:
    log, home = shop.log, shop.home
    with Harness(shop, spark=object()) as harness:
        harness.send("orders", {"id": 1, "at": NOON})
        assert harness.pipeline.log != log
    assert (shop.log, shop.home) == (log, home)
    assert list(tmp_path.iterdir()) == []


def test_everything_is_removed_with_the_block(shop: Pipeline) -> None:
    with Harness(shop, spark=object()) as harness:
        directory = harness.pipeline.home.parent
        assert os.path.isdir(directory)
    assert not os.path.exists(directory)


def test_what_is_sent_is_in_the_topic_of_the_input(shop: Pipeline) -> None:
    with Harness(shop, spark=object()) as harness:
        harness.send("orders", {"id": 1, "at": NOON})
        harness.send("orders", ({"id": number, "at": NOON} for number in (2, 3)))
        harness.send("customers", [{"id": 7, "name": "Ann"}])
        harness.delete("customers", 7)
        assert [row["id"] for row in harness.stream("orders")] == [1, 2, 3]
        assert [row["_deleted"] for row in harness.stream("customers")] == [False, True]
        assert harness.log.topic("shop_orders").event_time == "at"


def test_time_is_promised_where_there_is_an_event_time(shop: Pipeline) -> None:
    with Harness(shop, spark=object()) as harness:
        harness.send("orders", {"id": 1, "at": NOON})
        harness.send("customers", {"id": 7, "name": "Ann"})
        harness.advance(NOON + timedelta(hours=1))
        topics = ("shop_orders", "customers")
        marks = [
            [each.newest for each in harness.log.appended_ranges(name, 0, 0) if each.mark] for name in topics
        ]
        assert marks == [[micros(NOON + timedelta(hours=1))], []]
        assert [row["id"] for row in harness.stream("orders")] == [1]


def test_what_no_node_has_set_aside_is_nothing(shop: Pipeline) -> None:
    with Harness(shop, spark=object()) as harness:
        assert (harness.late("totals"), harness.dead("totals")) == ([], [])
        with pytest.raises(HeadwaterError, match='no node "oders"'):
            harness.send("oders", {"id": 1})


def test_views_are_kept_in_the_home_whatever_store_they_name(shop: Pipeline) -> None:
    shop.sql("totals", "SELECT * FROM orders", key="id", store="postgresql://db/shop")
    shop.views = "postgresql://db/shop"
    own = _with_own_views(shop)
    assert [node.store_url(own.views) for node in own.nodes] == [None]
    assert [node.store_url(shop.views) for node in shop.nodes] == ["postgresql://db/shop"]
