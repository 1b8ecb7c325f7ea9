"""The topics of a cluster: the broker's, with the declarations that the registry has for them.

A topic made by another program is read as somebody has declared it: for all who read it here (adopted), or
for one catalog alone (``read_as``); as its key and a free JSON value, where nobody has.
Invariant: the number of partitions is always the broker's; of a topic of another program nothing is changed.
"""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any, NamedTuple

from headwater import topic as topics
from headwater import topic_errors, wire_format
from headwater.errors import TopicError, TopicExists, UsageError
from headwater.formats import decoding
from headwater.formats.writer_schema import WriterSchemas
from headwater.log.kafka.cluster import BrokerTopic, Cluster
from headwater.log.kafka.config import MESSAGE_BYTES
from headwater.log.kafka.outgoing import Encode
from headwater.log.kafka.registry import Registry
from headwater.log.kafka.schema_registry import SchemaRegistry
from headwater.topic import TOMBSTONE_TIME, Topic
from headwater.values import jsonl

FOREIGN_SCHEMA = "key STRING, value VARIANT"
"""What a topic without a declaration is read as."""

MOST_PARTITIONS = 1024
"""Topics of other tools with more partitions than a topic can have here are left out."""

STALE_SECONDS = 1.0
_DAY_MS = 86_400_000


class KafkaTopic(NamedTuple):
    """A topic, with the broker's id of it, and whether it was declared."""

    topic: Topic
    declared: bool
    foreign: bool
    """Whether another program has made it: its settings are not ours."""
    writers: WriterSchemas
    """The schemas that its records name, where they name any."""

    @property
    def id(self) -> str:
        """The topic's identity."""
        return self.topic.id


class KafkaCatalog:
    """Finds and changes the topics of a cluster."""

    def __init__(self, cluster: Cluster):
        self.cluster = cluster
        self.registry = Registry(cluster)
        self.schemas = SchemaRegistry(cluster.config)
        self._recent: dict[str, tuple[float, KafkaTopic]] = {}
        self._local: dict[str, Topic] = {}
        """Declarations that hold for topics of other programs, as far as this catalog is asked."""

    def get(self, name: str) -> KafkaTopic:
        """Return a topic as it is declared now."""
        found = self.cluster.find([name]) if name and not name.startswith("__") else {}
        if name not in found:
            self._recent.pop(name, None)
            raise topic_errors.unknown(name, self.cluster.names())
        self.registry.refresh()
        return self._remember(self._known(name, found[name]))

    def recent(self, name: str, id: str) -> KafkaTopic:
        """Return a topic as it was declared a moment ago, if it is still the one with that id."""
        at, known = self._recent.get(name, (0.0, None))
        if known is None or time.monotonic() - at > STALE_SECONDS:
            known = self.get(name)
        if known.id != id:
            raise topic_errors.replaced(known.topic, id, *topic_errors.OPEN)
        return known

    def encoder(self, topic: Topic) -> Encode:
        """Return what makes values of a topic's rows."""
        if topic.format == wire_format.JSON:
            return jsonl.encode
        from headwater.formats import avro_writing  # which needs what not everybody has installed

        return partial(avro_writing.encode, subjects=self.schemas)

    def opened(self, topic: Topic) -> KafkaTopic:
        """Return a topic as it is declared now, if the one of its name still is that topic."""
        known = self.get(topic.name)
        if known.id != topic.id:
            raise topic_errors.replaced(known.topic, topic.id, *topic_errors.OPEN)
        return known

    def all(self) -> list[KafkaTopic]:
        """Return every topic, by name."""
        found = self.cluster.find(self.cluster.names())
        self.registry.refresh()
        within = {name: each for name, each in sorted(found.items()) if each.partitions <= MOST_PARTITIONS}
        return [self._known(name, each) for name, each in within.items()]

    def add(self, topic: Topic) -> KafkaTopic:
        """Make a topic on the broker and declare it."""
        if topic.name.startswith("__"):
            raise TopicError(
                f'invalid topic name "{topic.name}"', hint='names that begin with "__" are the broker\'s own'
            )
        settings = broker_settings(topic)
        self.registry.refresh()
        try:
            found = self.cluster.create(topic.name, topic.partitions, settings)
        except TopicExists:
            raise self._exists(topic.name) from None
        self.registry.declare(replace(topic, id=found.id))
        return self.get(topic.name)

    def adopt(self, topic: Topic) -> KafkaTopic:
        """Declare a topic that another program has made; of the topic itself nothing is changed."""
        known = self.get(topic.name)
        if known.declared and not known.foreign:
            raise TopicExists(
                f'topic "{topic.name}" was made here and has its declaration',
                hint="use `headwater topic alter` to change it",
            )
        self._check_formats(topic)
        declared = replace(topic, id=known.id, partitions=known.topic.partitions)
        self.registry.declare(declared, foreign=True)
        return self.get(topic.name)

    def disown(self, name: str) -> None:
        """Withdraw the declaration of a topic that another program has made."""
        known = self.get(name)
        if self.registry.declared(name) is None or not known.foreign:
            detail = "it was made here" if known.declared else "it has no declaration"
            raise TopicError(f'topic "{name}" was not adopted', detail=detail)
        self.registry.withdraw(name)
        self._recent.pop(name, None)

    def read_as(self, topic: Topic) -> None:
        """Let a declaration hold for a topic of another program, as far as this catalog is asked."""
        self._check_formats(topic)
        if self._local.setdefault(topic.name, topic) != topic:
            raise topic_errors.two_declarations(topic)
        self._recent.pop(topic.name, None)

    def alter(self, name: str, changes: dict[str, Any]) -> KafkaTopic:
        """Alter a topic on the broker and in its declaration."""
        known = self.get(name)
        if known.foreign:
            raise TopicError(
                f'topic "{name}" was made by another program', hint="change it with the tools that made it"
            )
        new = topics.altered(known.topic, **changes)
        settings = broker_settings(new)
        if new.partitions > known.topic.partitions:
            self.cluster.grow(name, new.partitions)
        if settings != broker_settings(known.topic):
            self.cluster.configure(name, settings)
        self.registry.declare(new)
        return self.get(name)

    def remove(self, name: str) -> None:
        """Delete a topic; the broker drops what groups had committed for it."""
        known = self.get(name)
        self.cluster.delete(name)
        self._recent.pop(name, None)
        self.registry.forget(name, known.id)

    def _known(self, name: str, found: BrokerTopic) -> KafkaTopic:
        declared = self.registry.declared(name)
        if declared is not None and declared.id == found.id:
            known = replace(declared, partitions=found.partitions)
            if name in self._local and self._local[name].read_otherwise:
                known = topics.overlaid(known, self._local[name])
            return KafkaTopic(known, True, self.registry.is_foreign(name), self.schemas)
        local = self._local.get(name) or topics.create(name, FOREIGN_SCHEMA)
        topic = replace(local, id=found.id, partitions=found.partitions)
        return KafkaTopic(topic, name in self._local, True, self.schemas)

    def _check_formats(self, topic: Topic) -> None:
        """Refuse formats that cannot be read here."""
        decoding.check(topic)
        if {topic.format, topic.key_format} & set(decoding.REGISTERED):
            self.schemas.check(topic.name)

    def _exists(self, name: str) -> TopicExists:
        for _ in range(20):  # another process may be between making and declaring it
            if self.registry.declared(name) is not None:
                hint = "use `headwater topic alter` to change it, or choose another name"
                return TopicExists(f'topic "{name}" exists already', hint=hint)
            time.sleep(0.1)
            self.registry.refresh()
        return TopicExists(f'topic "{name}" exists already, made by another program', hint=declare_hint(name))

    def _remember(self, known: KafkaTopic) -> KafkaTopic:
        self._recent[known.topic.name] = (time.monotonic(), known)
        return known


def declare_hint(name: str) -> str:
    """Return what to do with a topic that has no declaration."""
    return (
        f"`headwater topic describe {name}` looks at its records and shows a declaration to paste; "
        "`headwater topic adopt` makes it everybody's, and changes nothing of the topic itself"
    )


def broker_settings(topic: Topic) -> dict[str, str]:
    """Return the broker's settings for a declaration."""
    if topic.archive is not None:
        raise UsageError(
            f'topic "{topic.name}" cannot have an archive on Kafka',
            detail="the broker deletes old segments by itself",
            hint="leave out archive, or copy the topic with `headwater export`",
        )
    settings = {
        "cleanup.policy": topic.cleanup,
        "max.message.bytes": str(MESSAGE_BYTES),
        "message.timestamp.type": "LogAppendTime",
        "retention.bytes": str(topic.retention_bytes or -1),
        "retention.ms": "-1",
        "segment.bytes": str(1 << 30),
        "segment.ms": str(7 * _DAY_MS),
        "delete.retention.ms": str(_ms(TOMBSTONE_TIME)),
    }
    # The broker removes whole segments, so they must be small against what is retained.
    if topic.compacted:
        settings["delete.retention.ms"] = str(_ms(topic.retention or TOMBSTONE_TIME))
        settings |= {"segment.bytes": str(64 << 20), "segment.ms": str(_DAY_MS)}
    elif topic.retention is not None:
        settings["retention.ms"] = str(_ms(topic.retention))
        settings["segment.ms"] = str(max(1000, min(7 * _DAY_MS, _ms(topic.retention) // 8)))
    if topic.retention_bytes is not None:
        settings["segment.bytes"] = str(max(1 << 20, min(1 << 30, topic.retention_bytes // 8)))
    return settings


def _ms(length: timedelta) -> int:
    return max(1, length // timedelta(milliseconds=1))
