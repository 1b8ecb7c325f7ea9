"""What share groups cannot do is refused, with the reason; a queue can be deleted."""

from __future__ import annotations

import pytest

from headwater.errors import UsageError
from headwater.log import Log, QueueSettings

pytestmark = pytest.mark.kafka


def test_order_is_refused_with_the_reason(kafka: Log, name: str) -> None:
    kafka.create_topic(name, "k STRING NOT NULL", key="k")
    with pytest.raises(UsageError, match="on Kafka") as error:
        kafka.queue(name, "g", settings=QueueSettings(ordered=True))
    assert "share group" in str(error.value.detail)


def test_a_queue_that_was_deleted_begins_anew(kafka: Log, name: str) -> None:
    kafka.create_topic(name, "n BIGINT")
    with kafka.producer(name) as producer:
        producer.send({"n": 1})
    with kafka.queue(name, "g") as queue:
        queue.receive(timeout=20)[0].ack()
        with pytest.raises(UsageError, match="living consumers"):
            kafka.delete_queue(name, "g")
    kafka.delete_queue(name, "g")
    with kafka.queue(name, "g") as queue:
        queue.receive(timeout=20)[0].ack()
