"""Where a span ends is told by the reader's place, whatever markers and gaps lie between. No broker."""

from __future__ import annotations

from confluent_kafka import KafkaError, Message

from headwater.errors import UnknownTopic
from headwater.log.kafka import scan
from headwater.log.kafka.config import Config


def record(offset: int) -> Message:
    return Message(topic="orders", partition=0, offset=offset, value=b"{}")


def news(code: int, offset: int) -> Message:
    return Message(topic="orders", partition=0, offset=offset, error=KafkaError(code))


def offsets(found: list[Message]) -> list[int | None]:
    return [each.offset() for each in found]


def test_records_from_the_end_on_are_left_out_and_the_place_is_past_it() -> None:
    records, at, failed = scan._before([record(3), record(7), record(9)], 8, 3)
    assert (offsets(records), at, failed) == ([3, 7], 10, None)


def test_the_end_of_a_partition_moves_the_place_over_markers_and_never_back() -> None:
    end = KafkaError._PARTITION_EOF
    assert scan._before([record(3), news(end, 6)], 6, 3)[1] == 6
    assert scan._before([news(end, 2)], 6, 5)[1] == 5


def test_trouble_that_passes_changes_nothing() -> None:
    passing = news(KafkaError._TRANSPORT, 4)
    assert scan._before([record(3), passing, record(4)], 9, 3)[1:] == (5, None)
    assert (scan.is_transient(passing), scan.is_end(passing)) == (True, False)
    assert not scan.is_transient(record(3))


def test_what_comes_before_trouble_is_yielded_and_the_trouble_is_told_with_its_place() -> None:
    gone = news(KafkaError._UNKNOWN_PARTITION, 4)
    records, at, failed = scan._before([record(3), gone, record(4)], 9, 3)
    assert (offsets(records), at, failed) == ([3], 4, gone)
    error = scan.trouble(gone, Config("kafka://127.0.0.1:9092", {}), at)
    assert isinstance(error, UnknownTopic)
    assert 'topic "orders", partition 0, at offset 4' in str(error)
