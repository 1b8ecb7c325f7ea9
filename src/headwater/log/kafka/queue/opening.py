"""Opens a queue on Kafka, and refuses what share groups cannot do."""

from __future__ import annotations

import confluent_kafka

from headwater.errors import UsageError
from headwater.log.interface import Log
from headwater.log.kafka import groups
from headwater.log.kafka.catalog import KafkaCatalog, KafkaTopic
from headwater.log.kafka.cluster import Cluster
from headwater.log.kafka.queue.dead_letters import ShareGroupDeadLetters
from headwater.log.kafka.queue.queue import KafkaQueue
from headwater.log.kafka.queue.share_group import agree, begin_at_earliest, group_id, is_set_up
from headwater.log.position import Start
from headwater.log.queue_settings import QueueSettings

_NEEDED = "confluent-kafka 2.16"


def open_queue(
    log: Log, catalog: KafkaCatalog, known: KafkaTopic, group: str, asked: tuple[QueueSettings | None, Start]
) -> KafkaQueue:
    """Open a queue over a topic; ``asked`` are its settings and where it begins if it is new."""
    settings, start = asked
    if not hasattr(confluent_kafka, "ShareConsumer"):
        raise UsageError(
            "queues on Kafka need a newer client",
            detail=f"share consumers came with {_NEEDED}, here is {confluent_kafka.version()}",
            hint="run `pip install 'confluent-kafka>=2.16'`",
        )
    if settings is not None:
        _check(known.topic.name, group, settings)
    cluster, id = catalog.cluster, group_id(known.topic.name, group)
    dead_letters = ShareGroupDeadLetters(log, known.topic.name, group, lambda: begin_at_earliest(cluster, id))
    agreed = agree(cluster, id, settings, start)
    return KafkaQueue(catalog, known, (group, id), agreed, dead_letters)


def has_queue(cluster: Cluster, topic: str, group: str) -> bool:
    """Tell whether a group has a queue over a topic."""
    return is_set_up(cluster, group_id(topic, group))


def delete_queue(catalog: KafkaCatalog, topic: str, group: str) -> None:
    """Forget a queue: how far its share group is."""
    if not groups.forget(catalog.cluster, group_id(topic, group)):
        raise UsageError(
            f'queue of group "{group}" over topic "{topic}" has living consumers and cannot be deleted',
            hint="stop them first",
        )


def _check(topic: str, group: str, settings: QueueSettings) -> None:
    asked = {
        "ordered": settings.ordered,
        "priority": settings.priority,
        "delay": settings.delay,
        "time_to_live": settings.time_to_live,
    }
    for name, value in asked.items():
        if value:
            raise UsageError(
                f'queue of group "{group}" over topic "{topic}" cannot have {name}={value!r} on Kafka',
                detail="a share group delivers records in no order of their own, as soon as they are there, "
                "until they are acknowledged",
                hint="leave it out, or use a log in a directory",
            )
