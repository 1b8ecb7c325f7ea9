"""Which share groups of a broker are queues, and over which topics."""

from __future__ import annotations

import pytest

from headwater.log import Log
from headwater.log.kafka.queue.listing import _group

pytestmark = pytest.mark.kafka


@pytest.mark.parametrize(
    ("topic", "group"), [("emails", "mailers"), ("emails.mailers", ""), ("email", ""), ("mailers", "")]
)
def test_a_share_group_is_of_the_topic_whose_name_it_begins_with(topic: str, group: str) -> None:
    assert _group(topic, "emails.mailers.queue") == group


def test_a_queue_is_listed_from_when_something_was_received_until_it_is_deleted(
    kafka: Log, name: str
) -> None:
    kafka.create_topic(name, "n BIGINT")
    with kafka.producer(name) as producer:
        producer.send({"n": 1})
    with kafka.queue(name, "g") as queue:
        queue.receive(timeout=20)[0].reject("no")
        assert [each for each in kafka.queues() if each.topic == name] == [queue.status()]
    kafka.delete_queue(name, "g")
    assert [each for each in kafka.queues() if each.topic == name] == []
