from __future__ import annotations

from datetime import timedelta

import pytest

from contract_kit import EVERY_TYPE, rows_of
from headwater import Log, schema
from headwater.errors import SchemaError, TopicError, TopicExists, UnknownTopic


def test_a_created_topic_is_found_with_its_whole_declaration(log: Log, name: str) -> None:
    made = log.create_topic(
        name,
        EVERY_TYPE,
        key="id,name",
        event_time="at",
        partitions=3,
        retention="7 days",
        retention_bytes=10**9,
    )
    found = log.topic(name)
    assert found == made
    assert found.key == ("id", "name")
    assert (found.event_time, found.partitions) == ("at", 3)
    assert (found.retention, found.retention_bytes) == (timedelta(days=7), 10**9)
    assert schema.ddl(found.schema).startswith("flag BOOLEAN, tiny TINYINT")
    assert name in [topic.name for topic in log.topics()]


def test_a_topic_may_be_declared_again_but_not_otherwise(log: Log, name: str) -> None:
    made = log.create_topic(name, "id BIGINT", key="id", partitions=2, retention="1 day")
    assert log.create_topic(name, "id BIGINT", key="id", partitions=2, retention="1 day") == made
    for other in ({"key": ""}, {"partitions": 3}, {"retention": "2 days"}, {"schema": "id INT"}):
        settings = {"schema": "id BIGINT", "key": "id", "partitions": 2, "retention": "1 day"} | other
        with pytest.raises(TopicExists, match=name):
            log.create_topic(name, **settings)  # type: ignore[arg-type]
    altered = log.alter_topic(name, schema="id BIGINT, note STRING")
    assert (
        log.create_topic(name, "id BIGINT, note STRING", key="id", partitions=2, retention="1 day") == altered
    )


def test_an_unknown_topic_is_answered_with_the_nearest_name(log: Log, name: str) -> None:
    log.create_topic(name, "id BIGINT")
    with pytest.raises(UnknownTopic) as caught:
        log.topic(name + "x")
    assert caught.value.hint == f'did you mean "{name}"?'
    for call in (log.describe, log.read, log.producer, log.delete_topic, log.alter_topic):
        with pytest.raises(UnknownTopic):
            call(name + "-none")


@pytest.mark.parametrize(
    ("schema_text", "settings", "message"),
    [
        ("id BIGNT", {}, 'column "id" has an unknown type "BIGNT"'),
        ("id BIGINT, ID STRING", {}, "invalid schema"),
        ("id", {}, "invalid schema"),
        ("id BIGINT", {"key": "idd"}, 'has no column "idd"'),
        ("id DOUBLE", {"key": "id"}, 'column "id" cannot be a key'),
        ("id BIGINT", {"event_time": "id"}, "is not a TIMESTAMP"),
        ("id BIGINT", {"partitions": 0}, "1 to 1024 partitions"),
        ("id BIGINT", {"retention_bytes": 0}, "must be positive"),
        ("id BIGINT", {"cleanup": "shred"}, 'cleanup is "delete" or "compact"'),
        ("id BIGINT", {"cleanup": "compact"}, "needs a key"),
        ("_offset BIGINT", {}, "is reserved"),
        ("_Steps INT, id BIGINT", {}, "is reserved"),
        ("id BIGINT, s STRUCT<x: INT, X: INT>", {}, "invalid schema"),
        ("id BIGINT", {"retention_bytes": "5"}, "must be positive"),
    ],
)
def test_a_wrong_declaration_is_refused_and_nothing_is_made(
    log: Log, name: str, schema_text: str, settings: dict[str, object], message: str
) -> None:
    with pytest.raises(TopicError, match=message):
        log.create_topic(name, schema_text, **settings)  # type: ignore[arg-type]
    with pytest.raises(UnknownTopic):
        log.topic(name)


def test_a_name_with_a_slash_is_refused(log: Log) -> None:
    with pytest.raises(TopicError, match="invalid topic name"):
        log.create_topic("../orders", "id BIGINT")


def test_old_records_have_nulls_in_an_added_column(log: Log, name: str) -> None:
    log.create_topic(name, "id BIGINT")
    with log.producer(name) as producer:
        producer.send({"id": 1})
    log.alter_topic(name, schema="id BIGINT, note STRING")
    with log.producer(name) as producer:
        producer.send({"id": 2, "note": "new"})
    assert rows_of(log, name) == [{"id": 1, "note": None}, {"id": 2, "note": "new"}]


def test_a_producer_that_is_open_learns_of_a_new_column(log: Log, name: str) -> None:
    log.create_topic(name, "id BIGINT")
    with log.producer(name) as producer:
        producer.send({"id": 1})
        producer.flush()
        log.alter_topic(name, schema="id BIGINT, note STRING")
        producer.send({"id": 2, "note": "new"})
    assert rows_of(log, name)[-1] == {"id": 2, "note": "new"}


@pytest.mark.parametrize(
    ("new", "message"),
    [
        ("id BIGINT", 'column "note" cannot be removed'),
        ("note STRING, id BIGINT", "cannot be moved"),
        ("id INT, note STRING", 'column "id" cannot change'),
        ("id BIGINT NOT NULL, note STRING", 'column "id" cannot change'),
        ("id BIGINT, note STRING, more INT NOT NULL", "must be nullable"),
    ],
)
def test_any_other_change_of_schema_is_refused_with_the_reason(
    log: Log, name: str, new: str, message: str
) -> None:
    log.create_topic(name, "id BIGINT, note STRING")
    with pytest.raises(SchemaError, match=message):
        log.alter_topic(name, schema=new)
    assert schema.ddl(log.topic(name).schema) == "id BIGINT, note STRING"


def test_settings_can_be_altered_and_the_key_cannot(log: Log, name: str) -> None:
    log.create_topic(name, "id BIGINT", key="id", partitions=2)
    altered = log.alter_topic(name, retention="1 hour", partitions=4)
    assert (altered.retention, altered.partitions) == (timedelta(hours=1), 4)
    assert log.topic(name) == altered
    with pytest.raises(TopicError, match="cannot have fewer partitions"):
        log.alter_topic(name, partitions=1)
    with pytest.raises(TopicError, match="key of topic"):
        log.alter_topic(name, key="id")


def test_a_deleted_topic_is_gone_and_its_name_is_free(log: Log, name: str) -> None:
    log.create_topic(name, "id BIGINT")
    with log.producer(name) as producer:
        producer.send({"id": 1})
    with log.consumer(name, f"g-{name}") as consumer:
        while consumer.poll(1) is not None:
            consumer.commit()
    log.delete_topic(name)
    assert name not in [topic.name for topic in log.topics()]
    log.create_topic(name, "text STRING")
    assert rows_of(log, name) == []
    assert log.resolve(name, "latest").offsets == {0: 0}


def test_describe_tells_sizes_rate_oldest_and_newest(log: Log, name: str) -> None:
    log.create_topic(name, "id BIGINT", partitions=2)
    with log.producer(name) as producer:
        producer.send_batch([{"id": i} for i in range(100)])
    info = log.describe(name)
    assert [p.end - p.earliest for p in info.partitions] == [50, 50]
    assert info.records == 100
    assert info.size is None or info.size > 0
    assert info.rate > 0
    for partition in info.partitions:
        assert partition.oldest is not None
        assert partition.newest is not None
        assert partition.oldest <= partition.newest
