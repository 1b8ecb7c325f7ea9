"""A queue that is awaited: the same messages, and none lost by a call that is cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

import headwater
from headwater import Log
from headwater.queue import AsyncQueue


@pytest.fixture
def log() -> Iterator[Log]:
    with headwater.open("memory:") as log:
        log.create_topic("t", "k STRING NOT NULL, n BIGINT", key="k")
        yield log


def send(log: Log, *numbers: int) -> None:
    with log.producer("t") as producer:
        for n in numbers:
            producer.send({"k": "a", "n": n}, headers={"x": "y"})


def test_messages_are_awaited_and_answered(log: Log) -> None:
    send(log, 1, 2, 3, 4)

    async def work() -> None:
        async with AsyncQueue(log.queue("t", "g")) as queue:
            one, two, three, four = await queue.receive(4, timeout=5)
            assert (one.value["n"], one.key, one.headers, one.deliveries) == (1, "a", {"x": b"y"}, 1)
            assert one.id == "t:0:0"
            await one.ack()
            await two.nack(delay="1 hour")
            await three.reject("no")
            await four.extend("1 minute")
            status = await queue.status()
            assert (status.in_flight, status.delayed, status.dead) == (1, 1, 1)
            await queue.ack([four])

    asyncio.run(work())


def test_what_a_cancelled_call_would_have_received_is_given_back(log: Log) -> None:
    async def work() -> None:
        async with AsyncQueue(log.queue("t", "g")) as queue:
            waiting = asyncio.create_task(queue.receive(timeout=5))
            await asyncio.sleep(0.2)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            send(log, 1)
            for _ in range(200):  # until the thread has received it and it was given back
                found = await queue.receive(timeout=0.05)
                if found:
                    break
            assert [message.value["n"] for message in found] == [1]

    asyncio.run(work())
