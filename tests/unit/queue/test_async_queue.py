"""A queue that is awaited: the same messages, and none lost by a call that is cancelled."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator

import pytest

import headwater
from headwater import Log
from headwater.errors import UsageError
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


def test_a_cancelled_call_uses_up_no_delivery_though_it_was_cancelled_often(log: Log) -> None:
    async def work() -> None:
        async with AsyncQueue(log.queue("t", "g")) as queue:
            for _ in range(6):  # more often than a message is delivered
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(queue.receive(), 0.05)
            send(log, 1)
            [message] = await queue.receive(timeout=5)
            assert message.deliveries == 1
            assert (await queue.status()).dead == 0

    asyncio.run(work())


def test_a_program_ends_though_a_call_waits_for_ever() -> None:
    program = """
import asyncio, headwater
from headwater.queue import AsyncQueue
log = headwater.open("memory:")
log.create_topic("t", "n INT")
async def main():
    queue = AsyncQueue(log.queue("t", "g"))
    waiting = asyncio.create_task(queue.receive())
    await asyncio.sleep(0.1)
asyncio.run(main())
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=30)


def test_a_call_that_waits_is_told_that_the_queue_is_closed(log: Log) -> None:
    async def work() -> None:
        queue = AsyncQueue(log.queue("t", "g"))
        waiting = asyncio.create_task(queue.receive())
        await asyncio.sleep(0.05)
        await queue.close()
        with pytest.raises(UsageError, match="closed"):
            await waiting

    asyncio.run(work())
