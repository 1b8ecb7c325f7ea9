"""The log on Kafka: the same operations, mapped to the broker's own."""

from headwater.log.kafka.log import KafkaLog

__all__ = ["KafkaLog"]
