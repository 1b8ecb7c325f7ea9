"""One hub for all who follow a feed, as long as anybody does."""

from __future__ import annotations

import asyncio

from headwater.serve.push.live_push import LivePush
from memory_feed import MemoryFeed


def test_a_hub_is_shared_and_ends_with_its_last_user() -> None:
    async def scenario() -> None:
        feed, push = MemoryFeed(1), LivePush()
        async with push.hub(feed) as one:
            async with push.hub(feed) as two:
                assert one is two
            assert not one.failed
        assert one.failed
        one.wait()
        async with push.hub(feed) as another:
            assert another is not one

    asyncio.run(scenario())


def test_closing_ends_what_everybody_follows() -> None:
    async def scenario() -> None:
        feed, push = MemoryFeed(1), LivePush()
        async with push.hub(feed) as hub:
            push.close()
            await asyncio.sleep(0)
            assert hub.failed and push.closed

    asyncio.run(scenario())
