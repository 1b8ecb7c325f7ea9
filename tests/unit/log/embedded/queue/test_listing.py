"""Every queue is listed, by somebody who is no consumer of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headwater.log.embedded import EmbeddedLog
from headwater.log.embedded.queue import listing
from headwater.log.embedded.queue.store import QueueStore, state_path
from headwater.log.queue_settings import QueueSettings

Open = Callable[..., Any]


def test_what_is_listed_is_what_a_consumer_is_told(
    log: EmbeddedLog, open_queue: Open, send: Any, clock: Any
) -> None:
    send(*({"k": key, "n": n} for n, key in enumerate("aab")))
    queue, other = open_queue(QueueSettings(ordered=True), "g"), open_queue(group="h")
    assert queue.receive(1, timeout=0) and other.receive(1, timeout=0)
    clock.wait(60)
    assert listing.queues(log, log._storage, clock) == [queue.status(), other.status()]
    assert [each.consumers for each in listing.queues(log, log._storage)] == [1, 1]


def test_a_queue_over_a_topic_that_was_made_again_is_told_with_the_reason(
    log: EmbeddedLog, open_queue: Open, send: Any
) -> None:
    send({"n": 1})
    queue = open_queue()
    queue.receive(timeout=0)[0].reject("no")
    queue.close()
    schema = log.topic("t").schema
    log.delete_topic("t")
    log.create_topic("t", schema, key="k")
    [told] = log.queues()
    assert (told.topic, told.group, told.depth, told.dead, told.consumers) == ("t", "g", None, 1, 0)
    assert told.problem == 'topic "t" is not the one that the queue of group "g" is of'


def test_a_queue_that_is_just_being_made_is_not_listed(log: EmbeddedLog) -> None:
    path = state_path(log._storage.root, "t", "g")
    path.parent.mkdir(exist_ok=True)
    QueueStore(path, log._storage.root, None, False).close()
    assert log.queues() == []
