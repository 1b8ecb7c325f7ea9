"""Opens a queue: finds or makes its state, and refuses what cannot be meant.

Invariant: all consumers of a queue have the same settings, for the same topic; a state that is made is
durable before a message is delivered.
"""

from __future__ import annotations

import sqlite3
import uuid
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path

import orjson

from headwater import durations, topic_errors
from headwater.errors import TopicError, UsageError
from headwater.log.dead_letter_topic import DeadLetterTopic, dead_name
from headwater.log.embedded.failures import translating_errors
from headwater.log.embedded.queue import store as stores
from headwater.log.embedded.queue.consumers import ConsumerLock, count_living
from headwater.log.embedded.queue.dead_letters import DeadLettering
from headwater.log.embedded.queue.intake import Intake
from headwater.log.embedded.queue.queue import EmbeddedQueue, QueueParts
from headwater.log.embedded.queue.sources import QueueSources
from headwater.log.embedded.queue.store import TOPIC, QueueStore, queue_names, set_cursor, state_path
from headwater.log.embedded.storage import Storage
from headwater.log.interface import Log
from headwater.log.position import check_within
from headwater.log.queue_settings import QueueSettings, check
from headwater.topic import Topic


class QueueOpener:
    """Opens the queues of one log."""

    def __init__(self, log: Log, storage: Storage, clock: Callable[[], int] = durations.now):
        self._log, self._storage, self._clock = log, storage, clock

    def open(
        self, topic: Topic, group: str, settings: QueueSettings | None, start: Callable[[], Mapping[int, int]]
    ) -> EmbeddedQueue:
        """Open a queue; one that is new begins at ``start``."""
        side = DeadLetterTopic(self._log, topic.name, group)
        path = state_path(self._storage.root, topic.name, group)
        self._check_names(path, topic, group)
        side.check()
        with ExitStack() as unopened, translating_errors(self._storage.root):
            lock = ConsumerLock(path.with_suffix(""))
            unopened.callback(lock.close)
            store = QueueStore(path, self._storage.root, lock.mutex, self._storage.fsync)
            unopened.callback(store.close)
            agreed = _agree(store, topic, group, settings, start)
            sources = QueueSources(self._storage, topic, side.retry)
            _check_cursors(store, sources)
            intake = Intake(sources, agreed)
            dead_letters = DeadLettering(self._log, store, side, intake.at)
            unopened.pop_all()
        return EmbeddedQueue(
            topic.name, group, agreed, QueueParts(sources, store, intake, dead_letters, lock), self._clock
        )

    def delete(self, topic: str, group: str) -> None:
        """Forget a queue: its state, and what its group would try again. Its dead letters stay."""
        path = state_path(self._storage.root, topic, group)
        if not path.exists():
            raise UsageError(f'no queue of group "{group}" over topic "{topic}"')
        if count_living(path.with_suffix("")):
            raise UsageError(
                f'queue of group "{group}" over topic "{topic}" has living consumers and cannot be deleted',
                hint="stop them first",
            )
        side = DeadLetterTopic(self._log, topic, group)
        if side.existing(side.retry) is not None:
            self._log.delete_topic(side.retry)
        stores.remove(path)

    def _check_names(self, path: Path, topic: Topic, group: str) -> None:
        """Refuse a queue whose dead letters would go to the topic of another queue's."""
        ours = dead_name(topic.name, group)
        for other in queue_names(self._storage.root):
            if dead_name(*other) == ours and other != (topic.name, group):
                raise TopicError(
                    f'queue of group "{group}" over topic "{topic.name}" cannot be made',
                    detail=f'its dead letters would go to topic "{ours}", as those of group '
                    f'"{other[1]}" over topic "{other[0]}" do',
                    hint="name the group otherwise",
                )


def _agree(
    store: QueueStore,
    topic: Topic,
    group: str,
    settings: QueueSettings | None,
    start: Callable[[], Mapping[int, int]],
) -> QueueSettings:
    """Return the settings of a queue; make its state if it is new."""
    with store.transaction(durable=True) as db:
        row = db.execute("SELECT topic, settings FROM queue").fetchone()
        if row is None:
            chosen = settings or QueueSettings()
            check(chosen, topic)
            _make(db, topic, chosen, start())
            return chosen
        if row[0] != topic.id:
            hint = f"`headwater queue delete {topic.name} --group {group}` lets it begin anew"
            raise topic_errors.replaced(topic, row[0], f'the queue of group "{group}"', hint)
        stored = QueueSettings(**orjson.loads(row[1]))
        if settings is None or settings == stored:
            return stored
        check(settings, topic)
        _check_change(store, db, stored, settings)
        db.execute("UPDATE queue SET settings = ?", (orjson.dumps(settings.to_dict()).decode(),))
        return settings


def _make(db: sqlite3.Connection, topic: Topic, settings: QueueSettings, start: Mapping[int, int]) -> None:
    stored = orjson.dumps(settings.to_dict()).decode()
    db.execute(
        "INSERT INTO queue (one, id, topic, settings) VALUES (1, ?, ?, ?)",
        (uuid.uuid4().hex, topic.id, stored),
    )
    for number, offset in start.items():
        set_cursor(db, TOPIC, topic.id, number, offset)


def _check_change(
    store: QueueStore, db: sqlite3.Connection, stored: QueueSettings, settings: QueueSettings
) -> None:
    """Refuse other settings while others work by the old ones, or messages were taken in by them."""
    if stored.shape == settings.shape:
        return
    others = count_living(store.path.with_suffix("")) > 1
    if others or db.execute("SELECT 1 FROM messages LIMIT 1").fetchone() is not None:
        raise UsageError(
            f'queue "{store.path.stem}" has other settings',
            detail=f"it has {stored}, asked for {settings}",
            hint="stop its consumers and let those in flight be done; or open it without settings",
        )


def _check_cursors(store: QueueStore, sources: QueueSources) -> None:
    """Refuse a log that ends before the queue's cursors: it has lost its end, and would be read wrongly."""
    for source, stored in sources.stored().items():
        for number in range(stored.topic.partitions):
            query = "SELECT next FROM cursors WHERE source = ? AND topic = ? AND partition = ?"
            extent = sources.stats(stored, number).extent()
            for (offset,) in store.rows(query, (source, stored.id, number)):
                at = max(int(offset), extent.earliest)  # type: ignore[call-overload]
                check_within(stored.topic.name, number, at, extent)
