"""Appends under conditions: versions of keys, tags, request ids, on every backend."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from contract_kit import Backend, rows_of
from headwater import Log
from headwater.errors import Conflict, Fenced, RowError, TopicError, UsageError
from headwater.log.conditional import ConditionalProducer
from headwater.log.expected_version import Condition
from headwater.log.position import Position
from headwater.values.keys import partition_of

SCHEMA = "id STRING NOT NULL, n BIGINT"


@pytest.fixture
def producer(log: Log, name: str) -> Iterator[ConditionalProducer]:
    log.create_topic(name, SCHEMA, key="id", partitions=3)
    with log.conditional_producer(name) as made:
        yield made


def row(id: str, n: int = 0) -> dict[str, object]:
    return {"id": id, "n": n}


def numbers(producer: ConditionalProducer, **how: object) -> list[int]:
    return [each["n"] for batch in producer.read(**how) for each in batch.to_pylist()]  # type: ignore[arg-type]


def test_a_version_is_the_offset_behind_the_newest_record_of_a_key(producer: ConditionalProducer) -> None:
    assert producer.version("ada") == 0
    made = producer.append([row("ada"), row("ada")])
    assert made.offsets == range(made.offsets[0], made.offsets[0] + 2)
    assert producer.version("ada") == made.offsets[-1] + 1 == made.position.offsets[made.partition]
    assert producer.version("bob") == 0


def test_an_append_with_the_version_of_its_key_is_accepted_and_one_with_an_older_version_is_not(
    producer: ConditionalProducer, log: Log, name: str
) -> None:
    first = producer.append([row("ada", 1)], conditions=[Condition("ada")])
    with pytest.raises(Conflict) as refused:
        producer.append([row("ada", 2)], conditions=[Condition("ada")])
    assert (refused.value.partition, refused.value.offset) == (first.partition, first.offsets[0])
    assert refused.value.condition == Condition("ada")
    producer.append([row("ada", 3)], conditions=[Condition("ada", after=producer.version("ada"))])
    assert [each["n"] for each in rows_of(log, name)] == [1, 3]


def test_records_of_other_keys_are_in_nobodys_way(producer: ConditionalProducer) -> None:
    version = producer.append([row("ada", 1)]).offsets[-1] + 1
    for n in range(10):
        producer.append([row(f"other-{n}")])
    producer.append([row("ada", 2)], conditions=[Condition("ada", after=version)])
    assert numbers(producer, key="ada") == [1, 2]


def test_a_repeated_request_is_found_by_its_tag(producer: ConditionalProducer) -> None:
    once = Condition("ada", tags=["request:7"])
    producer.append([row("ada", 1)], tags=["request:7"], conditions=[once])
    producer.append([row("ada", 2)])
    with pytest.raises(Conflict):
        producer.append([row("ada", 1)], tags=["request:7"], conditions=[once])
    producer.append([row("bob", 3)], tags=["request:7"], conditions=[Condition("bob", tags=["request:7"])])
    assert numbers(producer, key="ada", tags=["request:7"]) == [1]


def test_tags_are_found_in_every_partition_and_only_where_a_record_has_all(
    producer: ConditionalProducer,
) -> None:
    producer.append([row("a", 1)], tags=["course:1", "student:1"])
    producer.append([row("b", 2)], tags=["course:1", "student:2"])
    seen = producer.position()
    producer.append([row("c", 3)], tags=["course:2", "student:1"])
    assert sorted(numbers(producer, tags=["course:1"])) == [1, 2]
    assert numbers(producer, tags=["course:1", "student:2"]) == [2]
    producer.append([row("d", 4)], conditions=[Condition(tags=["course:1"], after=seen)])
    with pytest.raises(Conflict) as refused:
        producer.append([row("d", 5)], conditions=[Condition(tags=["student:1"], after=seen)])
    assert refused.value.partition == partition_of(b"c", 3)
    producer.append([row("d", 6)], conditions=[Condition(tags=["course:1", "student:3"])])
    assert numbers(producer, key="d") == [4, 6]


def test_each_row_can_have_tags_of_its_own(producer: ConditionalProducer) -> None:
    producer.append([row("a", 1), row("a", 2)], tags=[["one"], ["two", "one"]])
    assert numbers(producer, tags=["one"]) == [1, 2]
    assert numbers(producer, tags=["two"]) == [2]


def test_nothing_of_an_append_is_written_if_one_condition_fails_or_one_row_does_not_fit(
    producer: ConditionalProducer, log: Log, name: str
) -> None:
    producer.append([row("ada")])
    with pytest.raises(Conflict):
        producer.append([row("bob"), row("bob")], conditions=[Condition("bob"), Condition("ada")])
    with pytest.raises(RowError, match="n"):
        producer.append([row("bob"), {"id": "bob", "n": "many"}])
    assert len(rows_of(log, name)) == 1


def test_what_is_appended_can_be_read_at_once_with_its_headers(
    producer: ConditionalProducer, backend: Backend, name: str
) -> None:
    made = producer.append([row("ada", 1)], tags=["x"], headers={"trace": "f00d"})
    [found] = rows_of(backend.again(), name, meta=True)
    assert dict(found["_headers"])["trace"] == b"f00d"
    assert (found["_partition"], found["_offset"]) == (made.partition, made.offsets[0])
    [again] = [each for batch in producer.read(key="ada", meta=True) for each in batch.to_pylist()]
    assert again == found


def test_what_one_producer_has_appended_counts_for_the_next(backend: Backend, name: str) -> None:
    backend.log.create_topic(name, SCHEMA, key="id", partitions=3)
    with backend.log.conditional_producer(name) as first:
        for n in range(5):
            first.append([row("ada", n)], tags=[f"request:{n}"])
        version = first.version("ada")
    with backend.again().conditional_producer(name) as second:
        assert second.version("ada") == version
        with pytest.raises(Conflict):
            second.append([row("ada", 2)], conditions=[Condition("ada", tags=["request:2"])])
        second.append([row("ada", 9)], conditions=[Condition("ada", after=version)])
        assert numbers(second, key="ada") == [0, 1, 2, 3, 4, 9]
        assert numbers(second, key="ada", after=version) == [9]


def test_threads_never_both_append_with_the_same_version(producer: ConditionalProducer) -> None:
    accepted, refused = Counter[str](), Counter[str]()
    ready = threading.Barrier(8)

    def count_up(name: str) -> None:
        ready.wait()
        for _ in range(10):
            version = producer.version("counter")
            try:
                producer.append([row("counter")], conditions=[Condition("counter", after=version)])
                accepted[name] += 1
            except Conflict:
                refused[name] += 1

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(count_up, map(str, range(8))))
    assert len(numbers(producer, key="counter")) == accepted.total()
    assert accepted.total() + refused.total() == 80


def test_an_older_writer_of_the_same_id_is_fenced(backend: Backend, name: str) -> None:
    backend.log.create_topic(name, SCHEMA, key="id")
    with backend.log.conditional_producer(name, id="bank") as old:
        old.append([row("ada", 1)])
        with backend.again().conditional_producer(name, id="bank") as new:
            new.append([row("ada", 2)], conditions=[Condition("ada", after=new.version("ada"))])
            with pytest.raises(Fenced):
                old.append([row("ada", 3)], conditions=[Condition("ada", after=1)])
            assert numbers(new, key="ada") == [1, 2]


def test_two_writers_never_lose_an_update(backend: Backend, name: str) -> None:
    """Each appends on what it knows; the embedded log refuses the later one, Kafka fences the older."""
    backend.log.create_topic(name, SCHEMA, key="id")
    with (
        backend.log.conditional_producer(name) as first,
        backend.again().conditional_producer(name) as second,
    ):
        seen = second.version("ada")
        accepted = []
        for who, each in enumerate((first, second)):
            try:
                each.append([row("ada", who)], conditions=[Condition("ada", after=seen)])
                accepted.append(who)
            except (Conflict, Fenced):
                continue
    assert len(accepted) == 1
    assert [each["n"] for each in rows_of(backend.again(), name)] == accepted


def test_what_a_plain_producer_appends_counts_too(producer: ConditionalProducer, log: Log, name: str) -> None:
    version = producer.append([row("ada", 1)]).offsets[-1] + 1
    with log.producer(name) as plain:
        plain.send(row("ada", 2))
    with pytest.raises(Conflict):
        producer.append([row("ada", 3)], conditions=[Condition("ada", after=version)])
    producer.append([row("ada", 4)], conditions=[Condition("ada", after=producer.version("ada"))])
    assert numbers(producer, key="ada") == [1, 2, 4]


def test_who_was_overtaken_reads_what_the_newer_one_has_appended(backend: Backend, name: str) -> None:
    backend.log.create_topic(name, SCHEMA, key="id")
    again = backend.again()
    with backend.log.conditional_producer(name) as first, again.conditional_producer(name) as second:
        made = second.append([row("ada", 1)], tags=["x"])
        assert first.version("ada") == made.offsets[-1] + 1
        second.append([row("ada", 2)])
        assert numbers(first, key="ada") == [1, 2]
        assert numbers(first, tags=["x"]) == [1]


@pytest.mark.parametrize(
    "settings", [{"retention": "7 days"}, {"retention_bytes": 1000}, {"cleanup": "compact"}], ids=str
)
def test_a_topic_whose_records_go_is_refused(log: Log, name: str, settings: dict[str, object]) -> None:
    log.create_topic(name, SCHEMA, key="id", **settings)  # type: ignore[arg-type]
    with pytest.raises(TopicError, match="under conditions"):
        log.conditional_producer(name)


def test_a_topic_that_gets_retention_or_partitions_is_refused_from_then_on(log: Log, name: str) -> None:
    log.create_topic(name, SCHEMA, key="id")
    with log.conditional_producer(name) as producer:
        producer.append([row("ada")])
        log.alter_topic(name, retention="7 days")
        with pytest.raises(TopicError, match="retention"):
            producer.append([row("ada")])
    log.alter_topic(name, retention=None, partitions=2)
    with pytest.raises(TopicError, match="partitions"), log.conditional_producer(name) as producer:
        producer.append([row("ada")])


def test_a_topic_without_a_key_is_refused(log: Log, name: str) -> None:
    log.create_topic(name, SCHEMA)
    with pytest.raises(TopicError, match="no key"):
        log.conditional_producer(name)


def test_what_cannot_be_meant_is_refused(producer: ConditionalProducer, name: str) -> None:
    for conditions in ([Condition()], [Condition("ada", after=-1)], [Condition(tags=["x"], after=7)]):
        with pytest.raises(UsageError):
            producer.append([row("ada")], conditions=conditions)
    with pytest.raises(UsageError, match="several partitions"):
        producer.append([row(f"key-{n}") for n in range(20)])
    with pytest.raises(UsageError, match="no rows"):
        producer.append([])
    with pytest.raises(UsageError, match="topic"):
        producer.append([row("ada")], conditions=[Condition("ada", after=Position("others", {0: 1}))])
    with pytest.raises(UsageError, match="tags"):
        producer.append([row("ada")], tags="request")


def test_a_key_of_several_columns_has_a_version(log: Log, name: str) -> None:
    log.create_topic(name, "shop STRING, number INT, n BIGINT", key="shop,number", partitions=2)
    with log.conditional_producer(name) as producer:
        producer.append([{"shop": "oslo", "number": 7, "n": 1}])
        assert producer.version(("oslo", 8)) == 0
        with pytest.raises(Conflict):
            producer.append([{"shop": "oslo", "number": 7, "n": 2}], conditions=[Condition(("oslo", 7))])
        assert numbers(producer, key=("oslo", 7)) == [1]
