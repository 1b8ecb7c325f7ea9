"""Rows that were set aside: the newest, and how many there are."""

from __future__ import annotations

from pathlib import Path

import headwater
from figures_kit import orders_shop, set_aside
from headwater.api.figures.set_aside import SetAside, dead_rows, late_rows
from headwater.pipeline.node import Node


def test_nothing_was_set_aside_before_there_is_a_topic_for_it(tmp_path: Path) -> None:
    shop = orders_shop(tmp_path)
    seen = shop["seen"]
    assert isinstance(seen, Node)
    with headwater.open(shop.log) as log:
        assert late_rows(log, shop, seen) == dead_rows(log, shop, seen) == SetAside()


def test_the_newest_late_rows_come_first_with_all_their_columns(tmp_path: Path) -> None:
    shop = orders_shop(tmp_path)
    seen = shop["seen"]
    assert isinstance(seen, Node)
    with headwater.open(shop.log) as log:
        log.create_topic("shop.seen.late", "id BIGINT, _window BIGINT")
        with log.producer("shop.seen.late") as producer:
            producer.send_batch([{"id": number, "_window": 7} for number in range(5)])
        found = late_rows(log, shop, seen, 2)
    assert found.count == 5
    assert [each["value"] for each in found.records] == [{"id": 4, "_window": 7}, {"id": 3, "_window": 7}]
    assert set(found.records[0]) == {"partition", "offset", "received", "value"}


def test_a_dead_record_has_its_place_and_its_error_and_is_redriven_once(tmp_path: Path) -> None:
    shop = orders_shop(tmp_path)
    set_aside(shop, "no number", "no item")
    seen = shop["seen"]
    assert isinstance(seen, Node)
    with headwater.open(shop.log) as log:
        found = dead_rows(log, shop, seen, 1)
    assert found.count == 2
    [record] = found.records
    assert (record["topic"], record["offset"], record["error"]) == ("orders", 1, "no item")
    assert record["record"]["item"] == "rum"
    assert headwater.redrive(shop, "seen") == 2
    assert headwater.redrive(shop, "seen") == 0
    assert headwater.overview(shop).attention == (), "those that were redriven wait no more"
    set_aside(shop, "no number", "no item", "again")
    [told] = headwater.overview(shop).attention
    assert told.message.startswith("1 record is set aside")
