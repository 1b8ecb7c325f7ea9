"""The topic of a stream's results, and whether a view can have what its function makes.

Invariant: what is refused here is what a log, or a store of views, would refuse; neither is opened.
"""

from __future__ import annotations

from headwater.engine.plan.node_plan import NodePlan
from headwater.errors import HeadwaterError, PipelineError
from headwater.record import DELETED
from headwater.topic import Cleanup, Topic


def check_derived_topic(plan: NodePlan) -> Topic | None:
    """Return the topic that a node writes, if it does; refuse results that cannot be stored."""
    node = plan.node
    try:
        node.check_storable(plan.stored)
        return node.derived_topic(plan.stored, plan.event_time, _cleanup(plan))
    except HeadwaterError as error:
        raise PipelineError(
            f"{node.title} cannot be stored: {error.message}",
            detail=error.detail,
            hint=error.hint,
            location=node.location,
        ) from error


def _cleanup(plan: NodePlan) -> Cleanup:
    """Return how a derived topic is cleaned up; one with deletions keeps the newest row of each key."""
    return "compact" if DELETED in plan.schema.names else "delete"
