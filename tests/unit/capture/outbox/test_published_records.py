"""Whose the records of an outbox's topic are."""

from __future__ import annotations

import headwater
from headwater.capture.outbox.published_records import published_names, published_records


def test_records_of_some_producers_are_read_behind_an_offset_as_far_as_they_are_kept() -> None:
    with headwater.open("memory:") as log:
        log.create_topic("orders", "n BIGINT")
        for who, row in (("a", "1"), ("b", "2"), ("c", "3"), ("a", "4")):
            with log.producer("orders", id=who) as producer:
                producer.send({"n": 1}, headers={"row": row})
                producer.send({"n": 1})
        assert published_names(log, "orders", {}, ("a", "b")) == {b"1", b"2", b"4"}
        assert published_names(log, "orders", {0: 2}, ("a", "b")) == {b"2", b"4"}
        assert [each.end for each in published_records(log, "orders", {0: 2}, ("a",))][-1] == 8
        assert published_names(log, "orders", {0: 99}, ("a",)) == set()
