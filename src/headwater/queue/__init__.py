"""Work shared out over queues: workers, queues that are awaited, bounded producers, alerts.

The queues themselves are the log's: ``Log.queue`` opens one, on every backend.

- ``Worker(queue, call, settings)``: calls a function with each message; ``headwater work`` is the same.
- ``AsyncQueue(queue)``: the same queue, awaited.
- ``BoundedProducer(log, topic, group, limit=…)``: what happens when producers are faster than consumers.
- ``QueueAlert(depth, age)``: when somebody should look.
"""

from headwater.queue.alert import QueueAlert
from headwater.queue.async_queue import AsyncMessage, AsyncQueue
from headwater.queue.bounded import BoundedProducer
from headwater.queue.worker import RejectMessage, Worker
from headwater.queue.worker_settings import WorkerSettings
from headwater.queue.worker_status import WorkerStatus

__all__ = [
    "AsyncMessage",
    "AsyncQueue",
    "BoundedProducer",
    "QueueAlert",
    "RejectMessage",
    "Worker",
    "WorkerSettings",
    "WorkerStatus",
]
