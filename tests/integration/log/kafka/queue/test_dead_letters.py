"""Dead letters on Kafka, in whatever process they are looked at."""

from __future__ import annotations

import pytest

from headwater.log import Log
from headwater.log.open import open as open_log

pytestmark = pytest.mark.kafka


def test_dead_letters_are_redriven_once_by_whoever_looks(kafka: Log, kafka_broker: str, name: str) -> None:
    kafka.create_topic(name, "n BIGINT")
    with kafka.producer(name) as producer:
        producer.send_batch([{"n": n} for n in range(3)])
    with kafka.queue(name, "g") as queue:
        for _ in range(3):
            [message] = queue.receive(timeout=20)
            message.reject(f"no {message.value['n']}")
    with open_log(f"kafka://{kafka_broker}") as other, other.queue(name, "g") as queue:
        assert sorted(dead.reason for dead in queue.dead()) == ["no 0", "no 1", "no 2"]
        assert queue.status().dead == 3
        assert (queue.redrive(), queue.redrive(), list(queue.dead())) == (3, 0, [])
        again = [queue.receive(timeout=20)[0] for _ in range(3)]
        assert sorted(message.value["n"] for message in again) == [0, 1, 2]
        assert {message.topic for message in again} == {f"{name}.g.retry"}
        queue.ack(again)
