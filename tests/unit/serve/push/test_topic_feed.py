"""A topic as a feed: ids of all partitions; ``test_routes.py`` follows one over HTTP."""

from __future__ import annotations

import threading

import pytest

import headwater
from headwater.errors import UsageError
from headwater.serve.push.filters import PushFilter
from headwater.serve.push.topic_feed import TopicFeed


def test_ids_name_every_partition_and_read_and_follow_agree() -> None:
    with headwater.open("memory:") as log:
        log.create_topic("orders", "id BIGINT", key="id", partitions=3)
        with log.producer("orders") as producer:
            producer.send_batch([{"id": n} for n in range(40)])
        feed, stop, followed = TopicFeed(log, "orders"), threading.Event(), []
        read = [item for chunk in feed.read({0: 0, 1: 0, 2: 0}, PushFilter()) for item in chunk.items]
        for chunk in feed.follow({0: 0, 1: 0, 2: 0}, stop):
            followed += chunk.items
            if len(followed) == 40:
                stop.set()
        for item in (*read, *followed):
            assert feed.resolve(item.id)[item.partition] == item.reached
        assert {(i.partition, i.reached): i.data(PushFilter()) for i in read} == {
            (i.partition, i.reached): i.data(PushFilter()) for i in followed
        }
        assert feed.resolve(read[-1].id) == feed.newest()
        with pytest.raises(UsageError):
            feed.snapshot(PushFilter(), lambda _size: None)
