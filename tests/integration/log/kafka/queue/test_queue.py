"""A queue on Kafka: what differs from the embedded one; the rest is in the contract."""

from __future__ import annotations

import pytest

from headwater.errors import UsageError
from headwater.log import Log
from headwater.log.queue_settings import QueueSettings
from headwater.queue import BoundedProducer

pytestmark = pytest.mark.kafka


def test_what_the_client_cannot_tell_is_refused_and_not_made_up(kafka: Log, name: str) -> None:
    kafka.create_topic(name, "n BIGINT")
    with kafka.queue(name, "g") as queue:
        assert (queue.status().depth, queue.status().dead) == (None, 0)
        with pytest.raises(UsageError, match="purged on Kafka"):
            queue.purge()
        with pytest.raises(UsageError, match="set for a whole group") as error:
            queue.receive(visible_after="5 seconds", timeout=0)
        assert "30 seconds" in str(error.value)
    with pytest.raises(UsageError, match="cannot be bounded"):
        BoundedProducer(kafka, name, "g", limit=1).send({"n": 1})


@pytest.mark.parametrize("done", [True, False])
def test_what_was_done_before_its_last_delivery_ended_is_not_dead(kafka: Log, name: str, done: bool) -> None:
    kafka.create_topic(name, "n BIGINT")
    with kafka.producer(name) as producer:
        producer.send({"n": 1})
    once = QueueSettings(max_deliveries=1)
    with kafka.queue(name, "g", settings=once) as queue:
        [message] = queue.receive(timeout=20)  # and its consumer ends before it has acknowledged it
    with kafka.queue(name, "g", settings=once) as queue:
        queue._settle({message.id} if done else set())
        assert queue.receive(timeout=5) == []
        assert queue.status().dead == (0 if done else 1)
