"""Several share consumers of one queue: a slow message holds no partition up."""

from __future__ import annotations

import pytest

from headwater.log import Log

pytestmark = pytest.mark.kafka


def test_what_waits_behind_a_slow_message_is_received(kafka: Log, name: str) -> None:
    kafka.create_topic(name, "n BIGINT", partitions=3)
    with kafka.queue(name, "g") as queue:
        seen = []
        for n in range(6):  # each is sent when the one before is received, and none is answered
            with kafka.producer(name) as producer:
                producer.send({"n": n})
            [message] = queue.receive(timeout=25)
            seen.append(message.value["n"])
        assert seen == list(range(6))
