"""What a conditional producer does before a backend sees anything; the rest is in ``tests/contract``."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

import headwater
from headwater.errors import Conflict, RowError, TopicError, UsageError
from headwater.log.conditional import ConditionalProducer, check_topic
from headwater.log.expected_version import Condition
from headwater.topic import create


@pytest.fixture
def producer() -> Iterator[ConditionalProducer]:
    with headwater.open("memory:") as log:
        log.create_topic("t", "id STRING NOT NULL, n BIGINT", key="id")
        with log.conditional_producer("t") as made:
            yield made


def test_callers_whose_rows_do_not_fit_are_refused_and_the_others_are_not(
    producer: ConditionalProducer,
) -> None:
    def send(n: int) -> str:
        try:
            producer.append([{"id": str(n), "n": "wrong" if n % 3 == 0 else n}])
            return "stored"
        except RowError:
            return "refused"

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(send, range(60))) == ["refused" if n % 3 == 0 else "stored" for n in range(60)]


def test_many_threads_get_the_offsets_of_their_own_rows(producer: ConditionalProducer) -> None:
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda n: producer.append([{"id": str(n), "n": n}] * 2), range(100)))
    assert sorted(offset for each in made for offset in each.offsets) == list(range(200))
    for n, each in enumerate(made):
        assert [row["n"] for batch in producer.read(key=str(n)) for row in batch.to_pylist()] == [n, n]
        assert producer.version(str(n)) == each.offsets[-1] + 1


def test_a_closed_producer_says_so(producer: ConditionalProducer) -> None:
    producer.close()
    with pytest.raises(UsageError, match="closed"):
        producer.append([{"id": "a"}])


@pytest.mark.parametrize("row", [{"n": 1}, {"id": None}])
def test_a_row_without_a_key_is_refused(producer: ConditionalProducer, row: dict[str, object]) -> None:
    with pytest.raises(RowError, match="null"):
        producer.append([row])


def test_a_key_of_another_type_is_refused(producer: ConditionalProducer) -> None:
    with pytest.raises(UsageError, match="STRING"):
        producer.version(7)
    with pytest.raises(UsageError, match="key of topic"):
        producer.version(("a", "b"))


def test_a_version_is_of_a_key(producer: ConditionalProducer) -> None:
    with pytest.raises(UsageError, match="position"):
        producer.newest(tags=["x"])


def test_lists_of_tags_are_as_many_as_rows(producer: ConditionalProducer) -> None:
    with pytest.raises(UsageError, match="2 lists of tags for 1 rows"):
        producer.append([{"id": "a"}], tags=[["x"], ["y"]])


def test_a_position_names_when_tags_were_read(producer: ConditionalProducer) -> None:
    seen = producer.position()
    producer.append([{"id": "a"}], tags=["x"])
    with pytest.raises(Conflict):
        producer.append([{"id": "b"}], conditions=[Condition(tags=["x"], after=seen)])
    producer.append([{"id": "b"}], conditions=[Condition(tags=["x"], after=producer.position())])


def test_a_topic_that_keeps_everything_is_taken() -> None:
    check_topic(create("t", "id STRING", key="id"))
    with pytest.raises(TopicError, match="compact"):
        check_topic(create("t", "id STRING", key="id", cleanup="compact"))
