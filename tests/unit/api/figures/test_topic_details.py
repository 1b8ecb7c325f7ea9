"""Topics in full: who writes them, who reads them, and how late the newest rows come."""

from __future__ import annotations

from pathlib import Path
from unittest import mock

import headwater
from headwater.api.figures import topic_details as details
from headwater.api.figures.topic_details import recent_lateness, topic_details, topic_summaries

COLUMNS = "id BIGINT, at TIMESTAMP"


def test_a_topic_tells_of_its_partitions_producers_and_groups(tmp_path: Path) -> None:
    shop = headwater.Pipeline("shop", log=f"file:{tmp_path}/data")
    shop.source("clicks", COLUMNS, topic="orders", event_time="at")
    with headwater.open(shop.log) as log:
        log.create_topic("orders", COLUMNS, key="id", event_time="at", partitions=2)
        for till in ("a", "b"):
            with log.producer("orders", id=till) as producer:
                producer.send_batch([{"id": number, "at": number * 1_000_000} for number in range(20)])
        log.seek("billing", "orders", "earliest")
        [summary] = topic_summaries(log, [shop])
        found = topic_details(log, "orders", [shop]).to_dict()
    listed = summary.to_dict()
    assert (listed["records"], listed["partitions"], listed["pipeline_of"]) == (40, 2, ["shop"])
    assert found["schema"] == [{"name": "id", "type": "BIGINT"}, {"name": "at", "type": "TIMESTAMP"}]
    assert sum(each["end"] for each in found["partitions"]) == 40
    writers = {(each["producer"], each["partition"]) for each in found["producers"]}
    assert writers == {(till, partition) for till in "ab" for partition in (0, 1)}
    assert max(each["clock"] for each in found["producers"]) == "1970-01-01T00:00:19Z"
    assert all(each["last"].endswith("Z") for each in found["producers"])
    assert sum(each["records"] for each in found["groups"]) == 40
    assert {each["group"] for each in found["groups"]} == {"billing"}


def test_only_the_newest_rows_are_judged() -> None:
    with headwater.open("memory:") as log:
        log.create_topic("orders", COLUMNS, event_time="at")
        with log.producer("orders", id="till") as producer:
            producer.send_batch([{"id": number, "at": 0} for number in range(100)])
        with mock.patch.object(details, "NEWEST", 10):
            assert recent_lateness(log, "orders").rows == 10
