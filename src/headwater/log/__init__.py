"""Topics, partitions, offsets: the embedded log and Kafka behind one interface."""

from headwater.log.interface import Consumer, Log
from headwater.log.position import Position, Start
from headwater.log.producer import Producer
from headwater.log.report import Finding, Lag, PartitionInfo, TopicInfo, Verification
from headwater.log.topic import Topic

__all__ = [
    "Consumer",
    "Finding",
    "Lag",
    "Log",
    "PartitionInfo",
    "Position",
    "Producer",
    "Start",
    "Topic",
    "TopicInfo",
    "Verification",
]
