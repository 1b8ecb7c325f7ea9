"""Reading without a group, over what compaction has left of a topic."""

from __future__ import annotations

import pytest

from headwater.log import Log
from kafka_kit import configure, rows, until

pytestmark = pytest.mark.kafka


def test_compaction_leaves_holes_that_readers_pass(kafka: Log, kafka_broker: str, name: str) -> None:
    kafka.create_topic(name, "id BIGINT, n BIGINT", key="id", cleanup="compact")
    configure(kafka_broker, name, segment_ms=1000, min_cleanable_dirty_ratio=0.01, delete_retention_ms=100)
    with kafka.producer(name) as producer:
        for n in range(30):
            producer.send_batch([{"id": i, "n": n} for i in range(10)])
        producer.delete(3)
        producer.flush()

    def compacted() -> bool:
        with kafka.producer(name) as producer:  # a segment is closed by the next record
            producer.send({"id": 99, "n": 0})
        return len(rows(kafka, name)) < 30

    assert until(compacted, 60)
    found = {row["id"]: row["n"] for row in rows(kafka, name) if not row["_deleted"]}
    assert {i: found[i] for i in range(10) if i != 3} == {i: 29 for i in range(10) if i != 3}
    assert kafka.verify(name).ok
    end = kafka.resolve(name, "latest").offsets[0]
    with kafka.consumer(name, f"g-{name}") as consumer:
        while consumer.poll(3) is not None:
            pass
        assert consumer.position().offsets == {0: end}
