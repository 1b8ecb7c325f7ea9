"""What every queue does alike: it checks what it is asked, and names what came too late."""

from __future__ import annotations

from typing import Any, cast

import pytest

from headwater.errors import UsageError
from headwater.log.interface import Log
from headwater.log.queue import MAX_REASON, Queue, fenced


def test_a_message_is_answered_by_the_queue_that_has_delivered_it(log: Log) -> None:
    with log.queue("t", "a") as one, log.queue("t", "b") as other:
        [message] = one.receive(timeout=0)
        with pytest.raises(UsageError, match="another queue"):
            other.ack([message])


def test_an_endless_reason_is_cut(log: Log) -> None:
    with log.queue("t", "a") as queue:
        [message] = queue.receive(timeout=0)
        message.reject("x" * 10_000)
        [dead] = queue.dead()
        assert len(dead.reason) == MAX_REASON


def test_what_came_too_late_is_named(log: Log) -> None:
    with log.queue("t", "a") as queue:
        messages = queue.receive(5, timeout=0)
        assert fenced(messages[:1]).message == f"message {messages[0].id} is no longer yours"
        assert fenced(messages).message.endswith(", … are no longer yours")


def test_no_queue_is_made_without_a_backend() -> None:
    with pytest.raises(TypeError, match="abstract"):
        cast(Any, Queue)()
