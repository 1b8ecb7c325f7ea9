"""Fan-out: shared encoding, own ids for who is ahead, and who is too slow is let go alone."""

from __future__ import annotations

import asyncio
import threading

from headwater.serve.push.feed import FeedChunk
from headwater.serve.push.filters import PushFilter
from headwater.serve.push.hub import Hub
from headwater.serve.push.subscriber import Subscriber
from headwater.serve.push.wire import SSE
from memory_feed import MemoryFeed, NumberItem


def subscriber(feed: MemoryFeed, limit: int = 1 << 20) -> Subscriber:
    return Subscriber(feed, PushFilter(), SSE, limit)


def ids(frames: list[bytes]) -> list[str]:
    lines = b"".join(frames).decode().split("\n")
    return [line.removeprefix("id: ") for line in lines if line.startswith("id: ")]


def hub_at(feed: MemoryFeed, offsets: dict[int, int]) -> Hub:
    hub = Hub(feed)
    hub.offsets = offsets
    return hub


def test_who_is_ahead_in_a_partition_gets_ids_that_do_not_lead_back() -> None:
    async def scenario() -> tuple[list[str], list[str]]:
        feed = MemoryFeed(2)
        hub, ahead = hub_at(feed, {0: 0, 1: 0}), subscriber(feed)
        assert hub.join(ahead, {0: 2, 1: 0})
        hub.publish(FeedChunk([NumberItem(1, 1, "0=0,1=1")], {0: 0, 1: 1}))
        first = ids(await ahead.take())
        items = [NumberItem(0, n, f"0={n},1=1") for n in (1, 2, 3)]
        hub.publish(FeedChunk(items, {0: 3, 1: 1}))
        assert ahead.offsets is hub.offsets  # from now on it shares what all get
        return first, ids(await ahead.take())

    assert asyncio.run(scenario()) == (["0=2,1=1"], ["0=3,1=1"])


def test_who_is_behind_the_reader_cannot_join() -> None:
    async def scenario() -> None:
        feed = MemoryFeed(2)
        hub = hub_at(feed, {0: 3, 1: 1})
        assert not hub.join(subscriber(feed), {0: 9, 1: 0})
        assert hub.join(subscriber(feed), {0: 3, 1: 1})

    asyncio.run(scenario())


def test_a_slow_subscriber_is_let_go_and_others_get_the_very_same_bytes() -> None:
    async def scenario() -> None:
        feed = MemoryFeed(1)
        hub, slow, one, two = hub_at(feed, {0: 0}), *(subscriber(feed, limit) for limit in (50, 999, 999))
        for each in (slow, one, two):
            hub.join(each, {0: 0})
        for n in range(1, 4):
            hub.publish(FeedChunk([NumberItem(0, n, f"0={n}")], {0: n}))
        assert slow.behind and ids(await slow.take()) == ["0=1"] and await slow.take() == []
        ones, twos = await one.take(), await two.take()
        assert ids(ones) == ["0=1", "0=2", "0=3"]
        assert all(a is b for a, b in zip(ones, twos, strict=True))

    asyncio.run(scenario())


def test_a_hub_that_is_stopped_before_it_has_started_leaves_nothing_behind() -> None:
    asked, go_on = threading.Event(), threading.Event()

    class SlowFeed(MemoryFeed):
        def newest(self) -> dict[int, int]:
            asked.set()
            go_on.wait()
            return {0: 0}

    async def scenario() -> None:
        hub = Hub(SlowFeed(1))
        starting = asyncio.ensure_future(hub.start())
        await asyncio.to_thread(asked.wait)
        hub.stop()
        go_on.set()
        await starting
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(scenario())
