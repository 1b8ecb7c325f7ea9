"""The topic of a stream's results, and whether a view can have what its function makes.

Invariant: what is refused here is what a log, or a store of views, would refuse; neither is opened.
"""

from __future__ import annotations

from headwater.engine.plan.shape import Shape
from headwater.errors import HeadwaterError, PipelineError
from headwater.topic import Cleanup, Topic
from headwater.values.fitting import DELETED


def check(shape: Shape) -> Topic | None:
    """Return the topic that a node writes, if it does; refuse results that cannot be stored."""
    node = shape.node
    try:
        node.check_storable(shape.stored)
        return node.derived_topic(shape.stored, shape.event_time, _cleanup(shape))
    except HeadwaterError as error:
        raise PipelineError(
            f"{node.title} cannot be stored: {error.message}",
            detail=error.detail,
            hint=error.hint,
            location=node.location,
        ) from error


def _cleanup(shape: Shape) -> Cleanup:
    """Return how a derived topic is cleaned up; one with deletions keeps the newest row of each key."""
    return "compact" if DELETED in shape.schema.names else "delete"
