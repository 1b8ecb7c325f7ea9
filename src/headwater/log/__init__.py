"""Topics, partitions, offsets, groups: the embedded log and Kafka behind one interface.

What every log can do is in ``interface.py``; ``embedded/`` and ``kafka/`` keep its promises, and know nothing
of each other. Records become Arrow on the way out and are checked on the way in.
"""

from headwater.log.conditional import Appended, ConditionalProducer
from headwater.log.consumer import Consumer
from headwater.log.expected_version import Condition
from headwater.log.interface import Log
from headwater.log.position import Position, Start
from headwater.log.producer import Producer
from headwater.log.queue import Message, Queue
from headwater.log.queue_report import DeadMessage, QueueStatus
from headwater.log.queue_settings import QueueSettings
from headwater.log.report import Finding, Lag, PartitionInfo, TopicInfo, Verification
from headwater.topic import Topic

__all__ = [
    "Appended",
    "Condition",
    "ConditionalProducer",
    "Consumer",
    "DeadMessage",
    "Finding",
    "Lag",
    "Log",
    "Message",
    "PartitionInfo",
    "Position",
    "Producer",
    "Queue",
    "QueueSettings",
    "QueueStatus",
    "Start",
    "Topic",
    "TopicInfo",
    "Verification",
]
