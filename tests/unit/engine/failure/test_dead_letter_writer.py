"""Rejected rows on their way to the dead-letter topic: each is written once, however often it is rejected."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from headwater.engine.failure.dead_letter_writer import DeadLetterWriter
from headwater.engine.failure.dead_letters import DeadLetters
from headwater.engine.failure.rejected_row import RecordOffset, RejectedRow
from headwater.log import Log
from headwater.log.open import open as open_log
from headwater.pipeline.node import StreamNode

NODE = StreamNode(name="seen", file="shop.py", line=3, topic="shop.seen")
RECORD = RejectedRow("ValueError: no", RecordOffset("orders", 0, 1))
RESULT = RejectedRow("KeyError: id", record='{"id": 7}')


@pytest.fixture
def log() -> Iterator[Log]:
    with open_log("memory:") as log:
        log.create_topic("orders", "id BIGINT")
        with log.producer("orders") as producer:
            producer.send_batch([{"id": 1}, {"id": 2}])
        yield log


def writer(log: Log, prepared: list[str] | None = None) -> DeadLetterWriter:
    prepared = [] if prepared is None else prepared
    letters = DeadLetters(log, "shop", NODE)
    return DeadLetterWriter(letters, "shop.seen.dead.1", lambda: prepared.append(letters.topic))


def written(log: Log) -> list[tuple[object, ...]]:
    rows = DeadLetters(log, "shop", NODE).rows()
    return [(row["error"], row["record"], row["topic"], row["offset"]) for row in rows]


def test_a_record_is_written_once_with_what_its_topic_has_and_left_out(log: Log) -> None:
    for number in (0, 1):
        one = writer(log)
        one.write(number, [RECORD])
        assert one.skips() == {"orders": {0: [1]}}
        one.close()
    assert written(log) == [("ValueError: no", '{"id":2}', "orders", 1)]


def test_another_row_is_written_once_in_each_micro_batch(log: Log) -> None:
    for number in (3, 3, 4):
        one = writer(log)
        one.write(number, [RESULT, RESULT])
        one.close()
    assert written(log) == [("KeyError: id", '{"id": 7}', None, None)] * 4
    assert writer(log).skips() == {}


def test_a_micro_batch_that_is_repeated_without_its_records_loses_no_other_row(log: Log) -> None:
    first = writer(log)
    first.write(0, [RECORD])
    first.write(0, [RESULT])
    first.close()
    again = writer(log)
    again.write(0, [RESULT])
    assert [error for error, *_ in written(log)] == ["ValueError: no", "KeyError: id"]
    again.close()


def test_the_topic_is_prepared_before_a_row_goes_there_and_not_without_one(log: Log) -> None:
    prepared: list[str] = []
    one = writer(log, prepared)
    one.write(0, [])
    assert prepared == [] and "shop.seen.dead" not in {topic.name for topic in log.topics()}
    one.write(0, [RESULT])
    one.write(1, [RESULT])
    assert prepared == ["shop.seen.dead"]
    one.close()
