"""The settings of a share group, which the broker keeps: where it begins, for how long, how often.

Invariant: the broker delivers a message some times more than the queue does: those that are over go to the
dead letters by the hand of a consumer, while the broker would forget them.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from confluent_kafka import KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # it exports them, but not for mypy
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from headwater import durations
from headwater.durations import interval
from headwater.errors import UsageError
from headwater.log.kafka import failures
from headwater.log.kafka.cluster import CALL_SECONDS, Cluster
from headwater.log.position import Start
from headwater.log.queue_settings import QueueSettings

SPARE = 2
"""Deliveries that the broker makes beyond those of the queue: a consumer then makes a dead letter of it."""
_START, _LOCK, _LIMIT = (
    *("share.auto.offset.reset", "share.record.lock.duration.ms"),
    "share.delivery.count.limit",
)
_MILLISECOND = timedelta(milliseconds=1)


def group_id(topic: str, group: str) -> str:
    """Return the name of a queue's share group on the broker.

    >>> group_id("emails", "mailers")
    'emails.mailers.queue'
    """
    return f"{topic}.{group}.queue"


def agree(cluster: Cluster, id: str, settings: QueueSettings | None, start: Start) -> QueueSettings:
    """Return the settings of a group as the broker has them, or set them."""
    known = _settings(cluster, id)
    if settings is None and _LIMIT in known and _LOCK in known:
        lock = timedelta(milliseconds=int(known[_LOCK]))
        return QueueSettings(max_deliveries=max(1, int(known[_LIMIT]) - SPARE), visible_after=lock)
    chosen = settings or QueueSettings()
    wanted = {
        _LIMIT: str(chosen.max_deliveries + SPARE),
        _LOCK: str(interval(chosen.visible_after) // _MILLISECOND),
        "share.isolation.level": "read_committed",
    }
    if _START not in known:
        wanted[_START] = start_text(start)
    _set(cluster, id, {name: value for name, value in wanted.items() if known.get(name) != value})
    return chosen


def is_set_up(cluster: Cluster, id: str) -> bool:
    """Tell whether a group was given the settings of a queue."""
    return _LIMIT in _settings(cluster, id)


def begin_at_earliest(cluster: Cluster, id: str) -> None:
    """Let what a group has not read from yet, as what is tried again, be read from its beginning."""
    _set(cluster, id, {_START: "earliest"})


def start_text(start: Start) -> str:
    """Return where a group begins, in Kafka's words.

    >>> start_text("latest")
    'latest'
    """
    if isinstance(start, datetime):
        ago = max(timedelta(), durations.instant(durations.now()) - start)
        return f"by_duration:PT{ago.total_seconds():.3f}S"
    if not isinstance(start, str):
        raise UsageError(
            "a queue on Kafka cannot begin at an offset",
            detail="a share group begins at the earliest record, at the latest, or at a time",
            hint='use start="earliest", "latest" or a datetime',
        )
    return start


def _settings(cluster: Cluster, id: str) -> dict[str, str]:
    """Return the settings that a group was given."""
    resource = ConfigResource(ResourceType.GROUP, id)
    with failures.translating_errors(cluster.config, f'look up group "{id}"'):
        [told] = cluster.admin.describe_configs([resource]).values()
        entries = told.result(CALL_SECONDS)
    return {name: str(each.value) for name, each in entries.items() if not each.is_default}


def _set(cluster: Cluster, id: str, settings: dict[str, str]) -> None:
    if not settings:
        return
    to = AlterConfigOpType.SET
    entries = [ConfigEntry(name, value, incremental_operation=to) for name, value in settings.items()]
    resource = ConfigResource(ResourceType.GROUP, id, incremental_configs=entries)
    try:
        for future in cluster.admin.incremental_alter_configs([resource]).values():
            future.result(CALL_SECONDS)
    except KafkaException as error:
        raise failures.translated(error.args[0], cluster.config, f'set up group "{id}"') from None
