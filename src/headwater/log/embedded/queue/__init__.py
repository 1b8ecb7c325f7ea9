"""Queues over topics of the embedded log: what was delivered and not acknowledged, kept beside it."""

from headwater.log.embedded.queue.opening import QueueOpener
from headwater.log.embedded.queue.queue import EmbeddedQueue

__all__ = ["EmbeddedQueue", "QueueOpener"]
