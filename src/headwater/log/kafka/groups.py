"""Consumer groups seen from outside: which there are, how far behind, and moving them.

Invariant: a group with living members is never moved under their feet.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaException, TopicPartition

from headwater import durations
from headwater.errors import UsageError
from headwater.log.kafka import failures, scan
from headwater.log.kafka.cluster import CALL_SECONDS, Cluster
from headwater.log.kafka.registry import READER_GROUP
from headwater.log.report import Lag
from headwater.topic import Topic
from headwater.topic_errors import replaced_for

PEEK_SECONDS = 5.0
_IDENTITY = "headwater.topic="
"""What stands before a topic's identity in the metadata of a committed offset."""


def names(cluster: Cluster) -> list[str]:
    """Return every group that is not internal."""
    with failures.translating_errors(cluster.config, "list groups"):
        told = cluster.admin.list_consumer_groups().result(CALL_SECONDS)
    return sorted(group.group_id for group in told.valid if not group.group_id.startswith("__headwater"))


def lag(cluster: Cluster, group: str) -> list[Lag]:
    """Return how far a group is behind, in every partition of each of its topics."""
    committed = _committed(cluster, group)
    found = cluster.find({*committed, *_subscribed(cluster, group)})
    return [
        each
        for topic, told in sorted(found.items())
        for each in _topic_lag(cluster, group, topic, (range(told.partitions), committed.get(topic, {})))
    ]


def places(topic: Topic, offsets: Mapping[int, int]) -> list[TopicPartition]:
    """Return offsets as they are committed: with the identity of the topic that they are of."""
    return [
        TopicPartition(topic.name, number, offset, f"{_IDENTITY}{topic.id}")
        for number, offset in offsets.items()
    ]


def is_of(topic: Topic, committed: TopicPartition) -> bool:
    """Tell whether an offset is of this topic, as far as who committed it has said."""
    said = committed.metadata or ""
    return not said.startswith(_IDENTITY) or said.removeprefix(_IDENTITY) == topic.id


def check_identity(group: str, topic: Topic, committed: Iterable[TopicPartition]) -> None:
    """Refuse offsets that a group has committed of an earlier topic of the same name."""
    for each in committed:
        if each.offset >= 0 and not is_of(topic, each):
            raise replaced_for(group, topic, str(each.metadata).removeprefix(_IDENTITY))


def set_committed(cluster: Cluster, group: str, topic: Topic, offsets: Mapping[int, int]) -> None:
    """Set a group's committed offsets."""
    if _subscribed(cluster, group):
        raise UsageError(
            f'group "{group}" has living members and cannot be moved',
            detail="on Kafka the offsets of a group can be set only while nobody reads in it",
            hint="stop its consumers, seek, and start them again",
        )
    with failures.translating_errors(cluster.config, f'move group "{group}"'):
        asked = [ConsumerGroupTopicPartitions(group, places(topic, offsets))]
        told = cluster.admin.alter_consumer_group_offsets(asked)[group].result(CALL_SECONDS)
        for each in told.topic_partitions:
            if each.error is not None:
                raise KafkaException(each.error)


def forget(cluster: Cluster, group: str) -> bool:
    """Delete a group, if nobody reads in it; tell whether it was done."""
    try:
        cluster.admin.delete_consumer_groups([group])[group].result(CALL_SECONDS)
    except KafkaException as error:
        if error.args[0].name() == "NON_EMPTY_GROUP":
            return False
        raise failures.translated(error.args[0], cluster.config, f'delete group "{group}"') from None
    return True


def _committed(cluster: Cluster, group: str) -> dict[str, dict[int, int]]:
    with failures.translating_errors(cluster.config, f'look up group "{group}"'):
        asked = [ConsumerGroupTopicPartitions(group)]
        told = cluster.admin.list_consumer_group_offsets(asked)[group].result(CALL_SECONDS)
    offsets: dict[str, dict[int, int]] = {}
    for each in told.topic_partitions:
        if each.offset >= 0:
            offsets.setdefault(each.topic, {})[each.partition] = each.offset
    return offsets


def _subscribed(cluster: Cluster, group: str) -> set[str]:
    """Return the topics that living members read; a member without a partition reads nothing yet."""
    try:
        told = cluster.admin.describe_consumer_groups([group])[group].result(CALL_SECONDS)
    except KafkaException as error:
        if error.args[0].name() == "GROUP_ID_NOT_FOUND":
            return set()
        raise failures.translated(error.args[0], cluster.config, f'look up group "{group}"') from None
    return {place.topic for member in told.members for place in _assigned(member)}


def _assigned(member: Any) -> list[TopicPartition]:
    return list(member.assignment.topic_partitions) if member.assignment else []


def _topic_lag(cluster: Cluster, group: str, topic: str, known: tuple[range, Mapping[int, int]]) -> list[Lag]:
    partitions, committed = known
    ends, starts = cluster.ends(topic, partitions), cluster.starts(topic, partitions)
    done = {number: committed.get(number, starts[number]) for number in partitions}
    behind = [number for number in partitions if done[number] < ends[number]]
    waiting = {number: max(done[number], starts[number]) for number in behind}
    received = times(cluster, topic, waiting)
    now = durations.now() // 1000
    return [
        Lag(
            group, topic, number, done[number], ends[number], max(0, ends[number] - done[number]),
            timedelta(milliseconds=max(0, now - received.get(number, now))),
        )
        for number in partitions
    ]  # fmt: skip


def times(cluster: Cluster, topic: str, offsets: Mapping[int, int]) -> dict[int, int]:
    """Return when the first record at or after an offset was received, in milliseconds."""
    found: dict[int, int] = {}
    if not offsets:
        return found
    waiting = set(offsets)
    consumer = Consumer(cluster.config.consumer(READER_GROUP, **{"queued.min.messages": 1}))
    try:
        consumer.assign([TopicPartition(topic, number, offset) for number, offset in offsets.items()])
        deadline = time.monotonic() + PEEK_SECONDS
        while waiting and time.monotonic() < deadline:
            for message in scan.take(consumer, 0.1):
                if message.error() is None and message.partition() in waiting:
                    found[message.partition()] = message.timestamp()[1]
                if message.error() is None or scan.is_end(message):
                    waiting.discard(message.partition())
    finally:
        consumer.close()
    return found
