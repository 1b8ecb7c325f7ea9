"""What every queue does alike: it checks what it is asked, and names what came too late."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, cast

import pytest

from headwater.errors import TopicError, UsageError
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


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ({"limit": 10**30}, "messages at once"),
        ({"timeout": "x"}, "number of seconds"),
        ({"timeout": float("nan")}, "number of seconds"),
        ({"visible_after": timedelta(0)}, "positive"),
        ({"visible_after": ""}, "positive"),
    ],
)
def test_what_cannot_be_meant_is_refused(log: Log, asked: dict[str, Any], reason: str) -> None:
    with log.queue("t", "a") as queue, pytest.raises(UsageError, match=reason):
        queue.receive(**asked)


def test_one_message_is_no_list_and_a_text_no_message(log: Log) -> None:
    with log.queue("t", "a") as queue:
        [message] = queue.receive(timeout=0)
        with pytest.raises(UsageError, match="a list") as refused:
            queue.ack(cast(Any, message))
        assert "message.ack()" in str(refused.value)
        with pytest.raises(UsageError, match="receive has returned"):
            queue.ack(cast(Any, "abc"))
        with pytest.raises(UsageError, match="positive"):
            message.extend(timedelta(0))


def test_settings_in_a_dictionary_are_refused(log: Log) -> None:
    with pytest.raises(UsageError, match="QueueSettings, not dict"):
        log.queue("t", "a", settings=cast(Any, {}))


def test_a_topic_with_a_queue_cannot_become_compacted(log: Log) -> None:
    log.create_topic("keyed", "k STRING NOT NULL", key="k")
    log.queue("keyed", "a").close()
    with pytest.raises(TopicError, match="read as a queue"):
        log.alter_topic("keyed", cleanup="compact")
    log.alter_topic("keyed", retention="1 day")
    log.delete_queue("keyed", "a")
    assert log.alter_topic("keyed", cleanup="compact").compacted


def test_no_queue_is_made_without_a_backend() -> None:
    with pytest.raises(TypeError, match="abstract"):
        cast(Any, Queue)()
