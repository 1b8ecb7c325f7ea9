"""Turns of who waits: what nobody waits for any more is given back, and no delivery is counted."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Iterator

import pytest

import headwater
from headwater import Queue
from headwater.errors import OffsetLost
from headwater.log import Message
from headwater.queue.receive_turns import ReceiveTurns


@pytest.fixture
def queue() -> Iterator[Queue]:
    with headwater.open("memory:") as log:
        log.create_topic("t", "n BIGINT")
        with log.producer("t") as producer:
            producer.send({"n": 1})
        with log.queue("t", "g") as queue:
            yield queue


async def cancelled_in_a_turn(turns: ReceiveTurns, receive: object) -> None:
    """Cancel who waits while its turn goes on."""
    begun, go_on = threading.Event(), threading.Event()

    def turn(seconds: float) -> list[Message]:
        begun.set()
        go_on.wait(10)
        return receive(seconds)  # type: ignore[operator, no-any-return]

    waiting = asyncio.create_task(turns.wait(turn, None))
    await asyncio.to_thread(begun.wait)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    go_on.set()
    await asyncio.to_thread(turns.close)


def test_what_is_received_after_the_cancel_is_given_back_as_if_it_had_not_been(queue: Queue) -> None:
    turns = ReceiveTurns(queue)
    asyncio.run(cancelled_in_a_turn(turns, lambda seconds: queue.receive(timeout=seconds)))
    [message] = queue.receive(timeout=0)
    assert message.deliveries == 1


def test_a_loss_of_which_nobody_is_told_any_more_is_logged(
    queue: Queue, caplog: pytest.LogCaptureFixture
) -> None:
    def lose(seconds: float) -> list[Message]:
        raise OffsetLost("3 messages are lost", missed=3, earliest=3)

    with caplog.at_level(logging.ERROR, "headwater"):
        asyncio.run(cancelled_in_a_turn(ReceiveTurns(queue), lose))
    assert "3 messages are lost" in caplog.text


def test_who_waits_for_a_while_gets_nothing_when_it_is_over() -> None:
    asked: list[float] = []

    async def wait() -> list[Message]:
        return await ReceiveTurns(None).wait(lambda seconds: asked.append(seconds) or [], 0)  # type: ignore

    assert asyncio.run(wait()) == []
    assert asked == [0]
