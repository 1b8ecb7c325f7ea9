"""Pages of records; ``test_routes.py`` shows them over HTTP."""

from __future__ import annotations

import json

import pytest

import headwater
from headwater.serve.push import records, topic_feed
from headwater.serve.push.filters import PushFilter


def test_a_page_that_finds_nothing_in_what_it_may_look_at_is_not_the_last() -> None:
    with headwater.open("memory:") as log:
        log.create_topic("orders", "id BIGINT", key="id")
        with log.producer("orders") as producer:
            producer.send_batch([{"id": n} for n in range(5_000)])
        wanted = PushFilter((4_999,), (("id", 4_999),))
        before, records.LOOKED_AT = records.LOOKED_AT, 1_500
        try:
            pages = [records.record_page(log, "orders", "earliest", wanted, 10)]
            while pages[-1].next:
                pages.append(records.record_page(log, "orders", pages[-1].next, wanted, 10))
        finally:
            records.LOOKED_AT = before
    assert len(pages) == 3 and [len(page.records) for page in pages] == [0, 0, 1]
    assert json.loads(pages[-1].to_json())["next"] is None


def test_a_page_of_large_records_ends_early_and_the_pages_hold_each_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(records, "PAGE_BYTES", 10_000)
    monkeypatch.setattr(topic_feed, "_BYTES", 5_000)
    with headwater.open("memory:") as log:
        log.create_topic("orders", "id BIGINT, text STRING")
        with log.producer("orders") as producer:
            producer.send_batch([{"id": n, "text": "x" * 1_000} for n in range(50)])
        pieces = [
            len(chunk.items) for chunk in topic_feed.TopicFeed(log, "orders").read({0: 0}, PushFilter())
        ]
        pages = [records.record_page(log, "orders", "earliest", PushFilter(), 1_000)]
        while pages[-1].next:
            pages.append(records.record_page(log, "orders", pages[-1].next, PushFilter(), 1_000))
    assert max(pieces) <= 5 and max(len(page.to_json()) for page in pages) < 12_000
    ids = [record["value"]["id"] for page in pages for record in json.loads(page.to_json())["records"]]
    assert ids == list(range(50)) and len(pages) > 4
