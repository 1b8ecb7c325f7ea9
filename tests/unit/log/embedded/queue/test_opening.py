"""A queue is opened with the settings that it has, over the topic that it was made over."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from headwater.errors import OffsetLost, TopicError, UsageError
from headwater.log.embedded import EmbeddedLog
from headwater.log.queue_settings import QueueSettings

Open = Callable[..., Any]


def test_settings_are_kept_with_the_queue(open_queue: Open) -> None:
    settings = QueueSettings(max_deliveries=2, priority="p")
    open_queue(settings).close()
    assert open_queue().settings == settings


def test_other_settings_are_refused_while_messages_were_taken_in_by_the_old_ones(
    open_queue: Open, send: Any
) -> None:
    send({"n": 1}, {"n": 2})
    queue = open_queue()
    [message] = queue.receive(timeout=0)
    assert open_queue(QueueSettings(max_deliveries=9)).settings.max_deliveries == 9
    with pytest.raises(UsageError, match="other settings"):
        open_queue(QueueSettings(ordered=True))
    message.ack()
    with pytest.raises(UsageError, match="other settings"):  # others are at work by the old ones
        open_queue(QueueSettings(ordered=True))


def test_settings_change_when_nobody_works_by_the_old_ones(open_queue: Open) -> None:
    open_queue().close()
    assert open_queue(QueueSettings(ordered=True)).settings.ordered


def test_two_queues_never_share_a_topic_of_dead_letters(log: EmbeddedLog) -> None:
    log.create_topic("a", "n INT")
    log.create_topic("a.b", "n INT")
    log.queue("a", "b.c").close()
    with pytest.raises(TopicError, match="would go to topic"):
        log.queue("a.b", "c")


def test_a_log_that_has_lost_its_end_is_refused(log: EmbeddedLog, open_queue: Open, send: Any) -> None:
    send({"n": 1})
    queue = open_queue()
    queue.receive(timeout=0)
    with queue._store.transaction() as db:
        db.execute("UPDATE cursors SET next = 5")
    queue.close()
    with pytest.raises(OffsetLost, match="past the end"):
        open_queue()


def test_a_queue_is_deleted_when_nobody_has_it_open(log: EmbeddedLog, open_queue: Open, send: Any) -> None:
    queue = open_queue()
    send({"n": 1})
    queue.receive(timeout=0)[0].ack()
    with pytest.raises(UsageError, match="living consumers"):
        log.delete_queue("t", "g")
    queue.close()
    assert log.has_queue("t", "g")
    log.delete_queue("t", "g")
    assert not log.has_queue("t", "g")
    with pytest.raises(UsageError, match="no queue"):
        log.delete_queue("t", "g")
    assert len(open_queue().receive(timeout=0)) == 1
