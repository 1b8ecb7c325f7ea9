"""Workers for the command line: the function that a file has, and the figures of a queue for Prometheus."""

from __future__ import annotations

from typing import NamedTuple

from headwater.engine.figures.metrics import Metric, labels, metric_text
from headwater.log import QueueStatus
from headwater.pipeline.loading import load_function
from headwater.queue import QueueAlert, WorkerStatus
from headwater.queue.calling import Handler


class QueueFigures(NamedTuple):
    """What is known of a queue and of a worker, at one time."""

    queue: QueueStatus
    worker: WorkerStatus
    alert: QueueAlert


QUEUE_METRICS: tuple[Metric[QueueFigures], ...] = (
    Metric("headwater_queue_depth", "gauge", "Messages that are still to be done.",
           lambda told: told.queue.depth),
    Metric("headwater_queue_in_flight", "gauge", "Messages that are delivered and not acknowledged.",
           lambda told: told.queue.in_flight),
    Metric("headwater_queue_delayed", "gauge", "Messages that wait for their time.",
           lambda told: told.queue.delayed),
    Metric("headwater_queue_oldest_seconds", "gauge", "Age of the oldest message that is still to be done.",
           lambda told: 0.0 if told.queue.oldest is None else told.queue.oldest.total_seconds()),
    Metric("headwater_queue_dead", "gauge", "Dead letters that were neither redriven nor purged.",
           lambda told: told.queue.dead),
    Metric("headwater_queue_lost_total", "counter", "Records that retention removed before that.",
           lambda told: told.queue.lost),
    Metric("headwater_queue_consumers", "gauge", "Consumers that have the queue open.",
           lambda told: told.queue.consumers),
    Metric("headwater_queue_alert", "gauge", "1 while the queue is deeper or older than it should be.",
           lambda told: bool(told.alert.reasons(told.queue))),
    Metric("headwater_worker_done_total", "counter", "Messages that this worker has done.",
           lambda told: told.worker.done),
    Metric("headwater_worker_retried_total", "counter", "Messages that failed and are tried again.",
           lambda told: told.worker.retried),
    Metric("headwater_worker_dead_total", "counter", "Messages that failed for the last time.",
           lambda told: told.worker.dead),
    Metric("headwater_worker_in_hand", "gauge", "Messages that this worker is working on.",
           lambda told: told.worker.in_hand),
)  # fmt: skip


def queue_metrics(queue: QueueStatus, worker: WorkerStatus, alert: QueueAlert) -> str:
    """Return the figures of a queue and its worker in Prometheus' text form."""
    named = {labels(topic=queue.topic, group=queue.group): QueueFigures(queue, worker, alert)}
    return metric_text(QUEUE_METRICS, named)


def load_handler(path: str) -> Handler:
    """Return the function that ``FILE.py:FUNCTION`` names, to be called with messages."""
    return load_function(path)
