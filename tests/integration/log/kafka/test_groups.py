"""Groups on Kafka: moving, lag, and of which topic their offsets are."""

from __future__ import annotations

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition

from headwater.errors import TopicReplaced, UsageError
from headwater.log import Log
from kafka_kit import admin, filled, rows

pytestmark = pytest.mark.kafka


def test_a_living_group_cannot_be_moved(kafka: Log, name: str) -> None:
    filled(kafka, name)
    with kafka.consumer(name, f"g-{name}") as consumer:
        assert consumer.poll(20) is not None
        consumer.commit()
        with pytest.raises(UsageError, match="living members"):
            kafka.seek(f"g-{name}", name, "earliest")
    assert kafka.seek(f"g-{name}", name, 4).offsets == {0: 4}
    with kafka.consumer(name, f"g-{name}") as consumer:
        batch = consumer.poll(20)
        assert batch is not None
        assert batch.column("n").to_pylist() == [4, 5, 6, 7, 8, 9]


def test_lag_is_none_behind_the_markers_of_transactions(kafka: Log, name: str) -> None:
    kafka.create_topic(name, "n BIGINT")
    with kafka.producer(name, id="till") as producer:
        for n in range(3):
            producer.send_batch([{"n": n}])
    with kafka.consumer(name, f"g-{name}") as consumer:
        seen = 0
        while (batch := consumer.poll(3)) is not None:
            seen += len(batch)
        consumer.commit()
    assert seen == 3
    assert [lag.records for lag in kafka.lag(f"g-{name}")] == [0]


def committed(broker: str, group: str) -> list[TopicPartition]:
    asked = admin(broker).list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])
    return list(asked[group].result(30).topic_partitions)


def leave(broker: str, group: str, *places: TopicPartition) -> None:
    """Commit as somebody did before the topic was made again, and whom the broker has not forgotten."""
    asked = admin(broker).alter_consumer_group_offsets([ConsumerGroupTopicPartitions(group, list(places))])
    asked[group].result(30)


def test_what_is_committed_tells_of_which_topic_it_is(kafka: Log, kafka_broker: str, name: str) -> None:
    filled(kafka, name)
    own = f"headwater.topic={kafka.topic(name).id}"
    kafka.seek(f"g-{name}", name, 3)
    assert [(each.offset, each.metadata) for each in committed(kafka_broker, f"g-{name}")] == [(3, own)]
    with kafka.consumer(name, f"g-{name}") as consumer:
        assert consumer.poll(20) is not None
        consumer.commit()
    assert [(each.offset, each.metadata) for each in committed(kafka_broker, f"g-{name}")] == [(10, own)]


def test_offsets_of_a_topic_before_are_refused_and_those_of_other_tools_are_not(
    kafka: Log, kafka_broker: str, name: str
) -> None:
    filled(kafka, name)
    leave(kafka_broker, f"g-{name}", TopicPartition(name, 0, 4, "headwater.topic=another"))
    with kafka.consumer(name, f"g-{name}") as consumer:
        for _ in range(2):
            with pytest.raises(TopicReplaced) as told:
                consumer.poll(20)
        assert f"headwater seek g-{name} {name} --to earliest" in str(told.value.hint)
    assert kafka.seek(f"g-{name}", name, "earliest").offsets == {0: 0}
    leave(kafka_broker, f"other-{name}", TopicPartition(name, 0, 4, "of another tool"))
    for group, count in ((f"g-{name}", 10), (f"other-{name}", 6)):
        with kafka.consumer(name, group) as consumer:
            batch = consumer.poll(20)
            assert batch is not None
            assert len(batch) == count


def test_a_named_producer_does_not_take_its_records_of_a_topic_before_for_stored(
    kafka: Log, kafka_broker: str, name: str
) -> None:
    kafka.create_topic(name, "n BIGINT")
    numbers = f"__headwater.producer.{name}.shop"
    leave(kafka_broker, numbers, TopicPartition(name, 0, 100, "headwater.topic=another"))
    with kafka.producer(name, "shop") as producer:
        producer.send_batch([{"n": n} for n in range(5)])
    assert [row["n"] for row in rows(kafka, name)] == list(range(5))
    with kafka.producer(name, "shop") as again:
        assert again.sequence > 1
