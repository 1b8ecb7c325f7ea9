"""How a queue is doing, and what purging forgets."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from headwater.log.queue_settings import QueueSettings

Open = Callable[..., Any]


def test_every_message_is_counted_once_as_what_it_is(open_queue: Open, send: Any, clock: Any) -> None:
    send(*({"n": n, "k": "a" if n < 3 else f"k{n}"} for n in range(8)))
    queue = open_queue(QueueSettings(ordered=True))
    messages = queue.receive(4, timeout=0)
    messages[0].nack(delay="1 minute")
    messages[1].reject("no")
    messages[2].ack()
    status = queue.status()
    assert (status.in_flight, status.delayed, status.blocked, status.dead) == (1, 1, 2, 1)
    assert (status.depth, status.consumers, status.lost) == (6, 1, 0)


def test_the_oldest_is_the_oldest_wherever_it_is(open_queue: Open, send: Any, clock: Any) -> None:
    queue = open_queue()
    assert queue.status().oldest is None
    send({"n": 1})
    [message] = queue.receive(timeout=0)
    clock.wait(60)
    oldest = queue.status().oldest
    assert oldest is not None and timedelta(seconds=50) < oldest < timedelta(seconds=70)
    message.ack()
    assert queue.status().oldest is None


def test_purging_forgets_what_waits_and_leaves_what_is_in_flight(open_queue: Open, send: Any) -> None:
    send(*({"n": n} for n in range(10)))
    queue, other = open_queue(), open_queue(group="other")
    one, two = queue.receive(2, timeout=0)
    two.nack(delay="1 hour")
    assert queue.purge() == 9
    assert (queue.status().depth, other.status().depth) == (1, 10)
    one.ack()
    assert queue.receive(timeout=0) == []
    send({"n": 10})
    assert [message.value["n"] for message in queue.receive(timeout=0)] == [10]
