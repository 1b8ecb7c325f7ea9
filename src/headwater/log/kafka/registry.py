"""What Kafka has no place for: declarations of topics, and which instance owns a producer id.

It lives in one compacted topic of one partition, so every process sees the same, in one order.
Invariant: a declaration holds for the one topic it was made for, not for a later one of that name.
"""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from dataclasses import replace
from typing import Any

import orjson
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from headwater import schema as schemas
from headwater import topic as topics
from headwater.errors import LogUnavailable, TopicExists
from headwater.log.kafka import failures
from headwater.log.kafka.cluster import CALL_SECONDS, Cluster
from headwater.topic import Topic

NAME = "__headwater"
READER_GROUP = "__headwater.reader"
"""Kafka wants a group name from every client that reads; nothing is ever committed under this one."""

_SETTINGS = {
    "cleanup.policy": "compact",
    "segment.ms": "86400000",
    "min.cleanable.dirty.ratio": "0.1",
}


class Registry:
    """Reads and writes the internal topic."""

    def __init__(self, cluster: Cluster):
        self._cluster = cluster
        self._lock = threading.RLock()
        self._entries: dict[str, dict[str, Any]] = {}
        self._declared: dict[str, Topic] = {}
        self._consumer: Consumer | None = None
        self._producer: Producer | None = None
        self._next = 0

    def declared(self, name: str) -> Topic | None:
        """Return a topic as it was declared, with the id it then had, as of the last ``refresh``."""
        return self._declared.get(name)

    def owner(self, topic_id: str, producer: str) -> str | None:
        """Return the instance that owns a producer id, as of the last ``refresh``."""
        return self._entries.get(_owner_key(topic_id, producer), {}).get("owner")

    def is_foreign(self, name: str) -> bool:
        """Tell whether a declaration is of a topic that another program has made."""
        return bool(self._entries.get(f"topic/{name}", {}).get("foreign"))

    def withdraw(self, name: str) -> None:
        """Drop a declaration."""
        self._put(f"topic/{name}", None)

    def declare(self, topic: Topic, *, foreign: bool = False) -> None:
        """Store a declaration."""
        body = {"id": topic.id, "name": topic.name, **topic.settings()}
        body["schemas"] = [schemas.ddl(each) for each in topic.schemas]
        if foreign:
            body["foreign"] = True
        self._put(f"topic/{topic.name}", body)

    def own(self, topic_id: str, producer: str, owner: str) -> None:
        """Make an instance the owner of a producer id."""
        self._put(_owner_key(topic_id, producer), {"owner": owner})

    def forget(self, name: str, id: str) -> None:
        """Drop everything about a topic."""
        with self._lock:
            self.refresh()
            owners = [key for key in self._entries if key.startswith(f"producer/{id}/")]
            for key in [f"topic/{name}", *owners]:
                self._put(key, None)

    def refresh(self) -> None:
        """Read on to the end of the internal topic."""
        with self._lock, failures.translating_errors(self._cluster.config, "read topic declarations"):
            end = self._cluster.ends(NAME, [0])[0] if self._opened() else 0
            deadline = time.monotonic() + CALL_SECONDS
            while self._next < end:
                assert self._consumer is not None
                for message in self._consumer.consume(1000, 0.05):
                    self._take(message)
                if time.monotonic() > deadline:
                    raise LogUnavailable("Kafka does not deliver the topic declarations")

    def close(self) -> None:
        """Close the clients."""
        with self._lock:
            if self._consumer is not None:
                self._consumer.close()
            self._consumer = self._producer = None
            self._next = 0

    def _opened(self) -> bool:
        """Open the reader; a cluster without the internal topic has no declarations."""
        if self._consumer is None and NAME in self._cluster.find([NAME]):
            self._consumer = Consumer(self._cluster.config.consumer(READER_GROUP))
            self._consumer.assign([TopicPartition(NAME, 0, self._cluster.starts(NAME, [0])[0])])
        return self._consumer is not None

    def _take(self, message: Any) -> None:
        error = message.error()
        if error is not None and error.code() in failures.TRANSIENT:
            return  # it may be of long ago: nobody asks this client while nothing changes
        if error is not None and error.code() != KafkaError._PARTITION_EOF:
            raise KafkaException(error)
        self._next = message.offset() + (error is None)
        if error is None:
            self._apply(message.key().decode(), orjson.loads(message.value()) if message.value() else None)

    def _apply(self, key: str, body: dict[str, Any] | None) -> None:
        kind, _, name = key.partition("/")
        if body is None:
            self._entries.pop(key, None)
            self._declared.pop(name if kind == "topic" else "", None)
            return
        self._entries[key] = body
        if kind == "topic":
            self._declared[name] = _declared(body)

    def _put(self, key: str, body: dict[str, Any] | None) -> None:
        with self._lock, failures.translating_errors(self._cluster.config, "store a topic declaration"):
            if self._producer is None:
                self._create()
                self._producer = Producer(self._cluster.config.producer())
            failed: list[KafkaError] = []
            self._producer.produce(
                NAME, key=key.encode(), value=None if body is None else orjson.dumps(body), partition=0,
                on_delivery=lambda error, _: failed.append(error) if error else None,
            )  # fmt: skip
            self._producer.flush()
            if failed:
                raise KafkaException(failed[0])
            self.refresh()

    def _create(self) -> None:
        if NAME not in self._cluster.find([NAME]):
            with suppress(TopicExists):  # another process may be first
                self._cluster.create(NAME, 1, _SETTINGS)


def _owner_key(topic_id: str, producer: str) -> str:
    return f"producer/{topic_id}/{producer}"


def _declared(stored: dict[str, Any]) -> Topic:
    body = {name: value for name, value in stored.items() if name != "foreign"}
    versions = tuple(schemas.parse(text) for text in body.pop("schemas"))
    id, name = body.pop("id"), body.pop("name")
    return replace(topics.create(name, **body), schemas=versions, id=id)
