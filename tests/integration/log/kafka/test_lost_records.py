"""Records that go, topics that are made again, partitions that come while somebody reads: no silent gap."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from headwater.errors import HeadwaterError, OffsetLost, TopicReplaced, UnknownTopic
from headwater.log import Log
from headwater.log.kafka import read_ahead
from headwater.log.open import open as open_log
from kafka_kit import configure, delete_records, polled, rows, until

pytestmark = pytest.mark.kafka
COUNT = 4_000
TIGHT = {"queued.min.messages": 1, "fetch.message.max.bytes": 20_000, "queued.max.messages.kbytes": 64}
"""Options with which a reader has few records in its hands, so that it has to ask the broker again."""


@pytest.fixture
def tight(kafka_broker: str) -> Iterator[Log]:
    with open_log(f"kafka://{kafka_broker}", **TIGHT) as log:
        yield log


@pytest.fixture
def topic(kafka: Log, name: str) -> str:
    kafka.create_topic(name, "n BIGINT, text STRING")
    append(kafka, name, 0, COUNT)
    return name


def append(log: Log, topic: str, first: int, end: int) -> None:
    with log.producer(topic) as producer:
        for start in range(first, end, 100):  # a fetch returns whole batches, however large
            numbers = range(start, min(start + 100, end))
            producer.send_batch([{"n": n, "text": f"{n:0>400}"} for n in numbers])
            producer.flush()


def taken(batches: Iterator[pa.RecordBatch]) -> tuple[int, OffsetLost]:
    """Return how many records come, in order and without a gap, before one is missing, and the error."""
    count = 0
    with pytest.raises(OffsetLost) as told:
        for batch in batches:
            assert batch.column("n").to_pylist() == list(range(count, count + len(batch)))
            count += len(batch)
    return count, told.value


@pytest.mark.parametrize("follow", [False, True])
def test_a_reader_is_told_how_many_records_went_before_it_came(
    tight: Log, kafka_broker: str, topic: str, follow: bool
) -> None:
    batches = tight.read(topic, follow=follow)
    first = next(batches)
    delete_records(kafka_broker, topic, COUNT - 10)

    def rest() -> Iterator[pa.RecordBatch]:
        yield first
        yield from batches

    count, error = taken(rest())
    assert 0 < count < COUNT - 10
    assert (error.missed, error.earliest) == (COUNT - 10 - count, COUNT - 10)


def test_a_member_of_a_group_is_told_how_many_records_went(tight: Log, kafka_broker: str, topic: str) -> None:
    with tight.consumer(topic, f"g-{topic}") as consumer:
        first = consumer.poll(20)
        assert first is not None
        delete_records(kafka_broker, topic, COUNT - 10)

        def rest() -> Iterator[pa.RecordBatch]:
            yield first
            while batch := consumer.poll(20):
                yield batch

        count, error = taken(rest())
        assert (error.missed, error.earliest) == (COUNT - 10 - count, COUNT - 10)
        assert consumer.position().offsets == {0: count}


def test_retention_that_passes_a_reader_is_told(
    kafka: Log, tight: Log, kafka_broker: str, topic: str
) -> None:
    batches = tight.read(topic, follow=True)
    first = next(batches)
    configure(kafka_broker, topic, retention_ms=100)
    assert until(lambda: kafka.resolve(topic, "earliest").offsets[0] == COUNT)

    def rest() -> Iterator[pa.RecordBatch]:
        yield first
        yield from batches

    count, error = taken(rest())
    assert error.missed == error.earliest - count > 0


def test_what_goes_while_it_is_read_ahead_is_told(
    tight: Log, kafka_broker: str, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read_ahead, "AHEAD", 500)
    tight.prefetch_into(tmp_path)
    reached = next(tight.appended_ranges(topic, 0, 0)).end
    delete_records(kafka_broker, topic, COUNT - 10)
    with pytest.raises(OffsetLost) as told:
        while reached < COUNT:
            *_, last = tight.appended_ranges(topic, 0, reached)
            reached = last.end
    assert told.value.earliest == COUNT - 10
    assert 0 < told.value.missed <= COUNT - 10 - reached
    for _ in range(2):  # nor does it begin anew behind the gap
        with pytest.raises(OffsetLost) as told:
            list(tight.appended_ranges(topic, 0, reached))
        assert (told.value.missed, told.value.earliest) == (COUNT - 10 - reached, COUNT - 10)


def test_what_went_before_it_is_read_ahead_is_told(kafka: Log, kafka_broker: str, topic: str) -> None:
    delete_records(kafka_broker, topic, 30)
    with pytest.raises(OffsetLost) as told:
        list(kafka.appended_ranges(topic, 0, 20))
    assert (told.value.missed, told.value.earliest) == (10, 30)
    assert list(kafka.appended_ranges(topic, 0, 30))[-1].end == COUNT


@pytest.mark.parametrize("again", [True, False])
def test_a_topic_that_is_deleted_under_a_reader_is_refused_also_where_it_is_made_again(
    kafka: Log, tight: Log, topic: str, again: bool
) -> None:
    batches = tight.read(topic, follow=True)
    seen = next(batches).column("n").to_pylist()
    kafka.delete_topic(topic)
    if again:
        kafka.create_topic(topic, "n BIGINT, text STRING")
        append(kafka, topic, 0, COUNT)
    with pytest.raises(HeadwaterError) as told:
        for batch in batches:
            seen += batch.column("n").to_pylist()
            assert seen == list(range(len(seen)))
    assert isinstance(told.value, TopicReplaced if again else UnknownTopic)


def test_records_of_partitions_that_are_added_are_read(kafka: Log, name: str, kafka_broker: str) -> None:
    kafka.create_topic(name, "n BIGINT")
    with (
        open_log(f"kafka://{kafka_broker}") as other,
        other.producer(name, id="till") as producer,
        kafka.consumer(name, f"g-{name}") as consumer,
    ):
        following = kafka.read(name, follow=True)
        producer.send_batch([{"n": 0}])
        producer.flush()
        assert next(following).to_pylist() == [{"n": 0}]
        assert polled(consumer, 1) == [{"n": 0}]
        kafka.alter_topic(name, partitions=3)
        assert until(lambda: other.topic(name).partitions == 3)
        producer.send_batch([{"n": n} for n in range(1, 31)])
        assert len(producer.flush().offsets) == 3
        found: list[int] = []
        while len(found) < 30:
            found += next(following).column("n").to_pylist()
        assert sorted(found) == list(range(1, 31))
        assert sorted(row["n"] for row in polled(consumer, 30)) == list(range(1, 31))
    assert sorted(row["n"] for row in rows(kafka, name)) == list(range(31))
