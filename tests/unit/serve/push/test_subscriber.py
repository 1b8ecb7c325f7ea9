"""The queue of a client: whole and in order up to its limit, and then it is told."""

from __future__ import annotations

import asyncio

from headwater.serve.push.filters import PushFilter
from headwater.serve.push.subscriber import Subscriber
from headwater.serve.push.wire import SSE
from memory_feed import MemoryFeed


def subscriber(limit: int) -> Subscriber:
    return Subscriber(MemoryFeed(1), PushFilter(), SSE, limit)


def test_what_waits_is_taken_whole_and_in_order() -> None:
    async def scenario() -> list[bytes]:
        one = subscriber(10)
        assert one.offer((b"abc", b"d"), 4) and one.offer((b"efg",), 3)
        return await one.take()

    assert asyncio.run(scenario()) == [b"abc", b"d", b"efg"]


def test_one_that_has_too_much_waiting_gets_that_and_is_behind() -> None:
    async def scenario() -> tuple[list[bytes], list[bytes], bool]:
        one = subscriber(5)
        assert one.offer((b"abcd",), 4) and not one.offer((b"ef",), 2)
        return await one.take(), await one.take(), one.behind

    assert asyncio.run(scenario()) == ([b"abcd"], [], True)


def test_a_piece_that_is_too_large_by_itself_is_taken_when_nothing_waits() -> None:
    async def scenario() -> list[bytes]:
        one = subscriber(2)
        assert one.offer((b"abcd",), 4)
        return await one.take()

    assert asyncio.run(scenario()) == [b"abcd"]
