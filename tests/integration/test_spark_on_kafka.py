"""Plain Spark over topics of a real broker, without a pipeline."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import headwater.spark
from headwater.log import Log

pytestmark = pytest.mark.kafka


def test_a_repeated_micro_batch_is_appended_once_though_its_topic_has_got_partitions(
    spark: SparkSession, kafka: Log, name: str, tmp_path: Path
) -> None:
    headwater.spark.register(spark)
    copies, checkpoint = f"{name}.copies", tmp_path / "checkpoint"
    kafka.create_topic(name, "id BIGINT", partitions=2)
    kafka.create_topic(copies, "id BIGINT", key="id", partitions=2)

    def drain() -> None:
        found = spark.readStream.format("headwater").options(url=kafka.url, topic=name, limit="40").load()
        places = {"url": kafka.url, "topic": copies, "checkpointLocation": str(checkpoint)}
        writer = found.writeStream.format("headwater").options(**places).trigger(availableNow=True)
        writer.start().awaitTermination()

    def send(numbers: range) -> None:
        with kafka.producer(name) as producer:
            producer.send_batch([{"id": n} for n in numbers])

    send(range(100))
    drain()
    newest = max(int(path.name) for path in (checkpoint / "commits").iterdir() if path.name.isdigit())
    (checkpoint / "commits" / str(newest)).unlink()  # as if it had crashed before
    kafka.alter_topic(copies, partitions=5)
    send(range(100, 200))
    drain()
    found = [row["id"] for batch in kafka.read(copies) for row in batch.to_pylist()]
    assert sorted(found) == list(range(200))
