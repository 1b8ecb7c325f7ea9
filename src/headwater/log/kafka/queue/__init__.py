"""Queues on Kafka: share groups (KIP-932), where the broker keeps what was delivered and not acknowledged."""

from headwater.log.kafka.queue.listing import queues
from headwater.log.kafka.queue.opening import delete_queue, has_queue, open_queue
from headwater.log.kafka.queue.queue import KafkaQueue

__all__ = ["KafkaQueue", "delete_queue", "has_queue", "open_queue", "queues"]
