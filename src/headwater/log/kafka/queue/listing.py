"""The queues on a Kafka broker: share groups with the names of queues over topics that are there.

A share group is known to its broker from when something was received in it. Invariant: what is listed is a
queue by ``has_queue``, too.
"""

from __future__ import annotations

import warnings

from headwater.log.interface import Log
from headwater.log.kafka import failures
from headwater.log.kafka.cluster import CALL_SECONDS, Cluster
from headwater.log.kafka.queue.dead_letters import ShareGroupDeadLetters
from headwater.log.kafka.queue.share_group import group_id, is_set_up
from headwater.log.queue_report import QueueStatus

_SUFFIX = group_id("", "").removeprefix(".")


def queues(log: Log, cluster: Cluster) -> list[QueueStatus]:
    """Return every queue with what is dead in it: of the rest Kafka's client tells nothing."""
    known = [id for id in _group_ids(cluster) if id.endswith(_SUFFIX) and is_set_up(cluster, id)]
    found = ((topic.name, _group(topic.name, id)) for topic in log.topics() for id in known)
    return [QueueStatus(topic, group, dead=_dead(log, topic, group)) for topic, group in found if group]


def _group_ids(cluster: Cluster) -> list[str]:
    """Return the names of all groups; the newer call of the client leaves out share groups."""
    with failures.translating_errors(cluster.config, "list groups"), warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return sorted(str(each.id) for each in cluster.admin.list_groups(timeout=CALL_SECONDS))


def _group(topic: str, id: str) -> str:
    """Return the group whose queue over a topic a share group would be; nothing if it is of another."""
    group = id.removesuffix(_SUFFIX).removeprefix(f"{topic}.")
    return group if group_id(topic, group) == id else ""


def _dead(log: Log, topic: str, group: str) -> int:
    return sum(1 for _ in ShareGroupDeadLetters(log, topic, group, lambda: None).letters())
