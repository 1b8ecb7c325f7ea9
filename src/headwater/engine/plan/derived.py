"""The topic of a stream's results, and whether a view can have what its function makes.

Invariant: what is refused here is what a log, or a store of views, would refuse; neither is opened.
"""

from __future__ import annotations

from typing import Any

from headwater import topic as topics
from headwater.engine.plan.shape import Shape
from headwater.errors import HeadwaterError, PipelineError
from headwater.record import DELETED
from headwater.topic import Topic
from headwater.values.keyed import declare


def check(shape: Shape) -> Topic | None:
    """Return the topic that a node writes, if it does; refuse results that cannot be stored."""
    node = shape.node
    try:
        if node.kind == "view":
            declare(node.title, shape.stored, node.key)
        return None if node.topic is None else topics.create(node.topic, **settings(shape))
    except HeadwaterError as error:
        raise PipelineError(
            f"{node.title} cannot be stored: {error.message}",
            detail=error.detail,
            hint=error.hint,
            place=node.place,
        ) from error


def settings(shape: Shape) -> dict[str, Any]:
    """Return how a derived topic is made; one with deletions keeps the newest row of each key."""
    return {
        "schema": shape.stored,
        "key": shape.node.key,
        "event_time": shape.event_time,
        "partitions": shape.node.partitions or 1,
        "cleanup": "compact" if DELETED in shape.schema.names else "delete",
    }
