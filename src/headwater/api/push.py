"""Browsers that get the notifications of a pipeline: what a web server does when one subscribes.

A page asks for ``public_key``, subscribes with it at its browser's push service, and hands over what it gets.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headwater.api.subject import Subject, pipeline_of
from headwater.pipeline.node import SinkNode
from headwater.pipeline.sink_target import SinkTarget
from headwater.sinks.push.subscriptions import PushSubscriptions, SubscriptionsFull

__all__ = ["SubscriptionsFull", "public_key", "sinks", "subscribe", "unsubscribe"]
_TARGET = "push"


def sinks(pipeline: Subject) -> list[str]:
    """Return the names of the sinks of a pipeline that send notifications; it needs not have run."""
    nodes = (node for node in pipeline_of(pipeline).nodes if isinstance(node, SinkNode))
    return [
        node.name for node in nodes if isinstance(node.target, SinkTarget) and node.target.name == _TARGET
    ]


def public_key(pipeline: Subject) -> str:
    """Return the key that a page passes to ``pushManager.subscribe`` as ``applicationServerKey``.

    It is the same for good: browsers that have subscribed with it know the pipeline by it.
    """
    from headwater.sinks.push.encryption import public_key_text

    with PushSubscriptions(pipeline_of(pipeline).home) as subscriptions:
        return public_key_text(subscriptions.secret())


def subscribe(pipeline: Subject, subscription: Mapping[str, Any]) -> None:
    """Let a browser get the notifications of a pipeline from now on.

    ``subscription`` is what ``PushSubscription.toJSON()`` of the browser returns. One whose endpoint is at no
    push service that is known is refused, and so is the 1,001st.
    """
    with PushSubscriptions(pipeline_of(pipeline).home) as subscriptions:
        subscriptions.subscribe(subscription)


def unsubscribe(pipeline: Subject, endpoint: str) -> bool:
    """Let a browser get nothing more, by the endpoint of its subscription; tell whether it was there."""
    with PushSubscriptions(pipeline_of(pipeline).home) as subscriptions:
        return subscriptions.unsubscribe(endpoint)
