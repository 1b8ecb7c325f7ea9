"""A share consumer, its answers, and what comes too late."""

from __future__ import annotations

import time

import pytest

from headwater.errors import Fenced
from headwater.log import Log, QueueSettings

pytestmark = pytest.mark.kafka


def test_what_is_not_acknowledged_in_time_is_delivered_again_and_the_late_answer_is_fenced(
    kafka: Log, name: str
) -> None:
    kafka.create_topic(name, "n BIGINT")
    with kafka.producer(name) as producer:
        producer.send({"n": 1})
    with kafka.queue(name, "g", settings=QueueSettings(visible_after="2 seconds")) as queue:
        [slow] = queue.receive(timeout=20)
        time.sleep(2.5)
        [again] = queue.receive(timeout=20)
        assert (again.value, again.deliveries) == (slow.value, 2)
        with pytest.raises(Fenced):
            slow.ack()
        again.ack()
