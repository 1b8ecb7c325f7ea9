"""Every queue of an embedded log, as somebody sees them who is no consumer of any.

Invariant: to look at queues changes nothing and makes none; one that cannot be opened, because its topic is
gone, is told with the reason, for it is there.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace

from headwater import durations, topic_errors
from headwater.errors import HeadwaterError
from headwater.log.dead_letter_topic import DeadLetterTopic
from headwater.log.embedded.queue import figures
from headwater.log.embedded.queue.consumers import count_living
from headwater.log.embedded.queue.dead_letters import count_letters
from headwater.log.embedded.queue.sources import QueueSources
from headwater.log.embedded.queue.store import QueueName, QueueStore, queue_names, state_path
from headwater.log.embedded.storage import Storage
from headwater.log.interface import Log
from headwater.log.queue_report import QueueStatus
from headwater.topic import Topic


def queues(log: Log, storage: Storage, clock: Callable[[], int] = durations.now) -> list[QueueStatus]:
    """Return how every queue is doing, by topic and group."""
    found = (_status(log, storage, name, clock()) for name in queue_names(storage.root))
    return [each for each in found if each is not None]


def _status(log: Log, storage: Storage, name: QueueName, now: int) -> QueueStatus | None:
    """Return how a queue is doing; None if it is just being made."""
    path, side = state_path(storage.root, *name), DeadLetterTopic(log, *name)
    with closing(QueueStore(path, storage.root, None, storage.fsync)) as store:
        made = store.rows("SELECT topic, lost FROM queue")
        if not made:
            return None
        unread = QueueStatus(*name, lost=int(made[0][1]), consumers=count_living(path.with_suffix("")))  # type: ignore[call-overload]
        try:
            unread = replace(unread, dead=count_letters(log, store, side))
            sources = QueueSources(storage, _same(storage, name, str(made[0][0])), side.retry)
            return figures.status(store, sources, name, unread.dead, now)
        except HeadwaterError as error:
            return replace(unread, problem=error.message)


def _same(storage: Storage, name: QueueName, id: str) -> Topic:
    """Return the topic over which a queue was made, or refuse another one of its name."""
    topic = storage.catalog.get(name.topic).topic
    if topic.id != id:
        raise topic_errors.replaced(topic, id, f'the queue of group "{name.group}"', "delete the queue")
    return topic
