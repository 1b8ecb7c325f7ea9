"""The topics of a queue's group: made when they are needed, and never somebody else's."""

from __future__ import annotations

import pyarrow as pa
import pytest

from headwater.errors import TopicError
from headwater.log.dead_letter_topic import GROUP, ORIGIN, DeadLetterTopic, Death
from headwater.log.interface import Log


def read(log: Log, topic: str = "t") -> pa.Table:
    return pa.Table.from_batches(list(log.read(topic, meta=True)))


def test_a_dead_letter_tells_why_and_keeps_its_own_headers(log: Log) -> None:
    with log.producer("t") as producer:
        producer.send({"n": 10}, headers={"trace": "x", GROUP: "a lie"})
    side = DeadLetterTopic(log, "t", "g")
    side.prepared(side.name)
    last = next(batch for batch in log.read("t", meta=True) if 10 in batch.column("n").to_pylist())
    letters = side.letters(pa.Table.from_batches([last]).slice(len(last) - 1), [Death("no", 3, "t:0:5")])
    with log.producer(side.name) as producer:
        producer.send_changes(letters)
    [dead] = side.read(0)
    assert (dead.value, dead.headers) == ({"n": 10}, {"trace": b"x", GROUP: b"a lie"})
    assert (dead.reason, dead.deliveries, dead.origin) == ("no", 3, "t:0:5")
    retried = side.retries(read(log, side.name)).column("_headers")[0].as_py()
    assert retried == [("trace", b"x"), (GROUP, b"a lie"), (ORIGIN, b"t:0:5")]


def test_an_empty_topic_of_the_name_that_cannot_take_its_records_is_refused(log: Log) -> None:
    log.create_topic("t.g.dead", "x STRING, y INT NOT NULL")
    with pytest.raises(TopicError, match="cannot have topic") as refused:
        log.queue("t", "g")
    assert "delete that topic" in str(refused.value)


def test_a_letter_that_was_written_twice_is_read_once(log: Log) -> None:
    side = DeadLetterTopic(log, "t", "g")
    side.prepared(side.name)
    letter = side.letters(read(log).slice(0, 1), [Death("no", 3, "t:0:0")])
    with log.producer(side.name) as producer:
        producer.send_changes(pa.concat_tables([letter, letter]))
    assert len(list(side.read(0))) == 1


def test_columns_that_were_added_since_are_added_to_the_dead_letters(log: Log) -> None:
    side = DeadLetterTopic(log, "t", "g")
    side.prepared(side.name)
    log.alter_topic("t", schema="n INT, m INT")
    assert side.prepared(side.name).schema.names == ["n", "m"]


def test_a_topic_of_somebody_else_is_refused(log: Log) -> None:
    log.create_topic("t.g.dead", "n INT")
    with log.producer("t.g.dead") as producer:
        producer.send({"n": 1})
    with pytest.raises(TopicError, match="somebody else"):
        DeadLetterTopic(log, "t", "g").check()


def test_no_topic_is_made_before_it_is_needed(log: Log) -> None:
    side = DeadLetterTopic(log, "t", "g")
    side.check()
    assert list(side.read(0)) == []
    assert [topic.name for topic in log.topics()] == ["t"]
