"""What a row carries beside its columns, and what is refused at once."""

from __future__ import annotations

from typing import Any

import pytest

from contract_kit import rows_of
from headwater import Log
from headwater.errors import HeadwaterError, RowError, UsageError


@pytest.mark.parametrize(
    "marks",
    [
        {"sequence": -1},
        {"sequence": 1 << 63},
        {"sequence": "7"},
        {"headers": [("a", b"b")]},
        {"headers": {"a": 1}},
        {"headers": {"a": "\ud800"}},
        {"headers": {"\ud800": b"a"}},
        {"occurred": "yesterday"},
        {"sent": 5},
    ],
)
def test_wrong_marks_are_refused_at_once_and_disturb_no_other_row(
    log: Log, name: str, marks: dict[str, Any]
) -> None:
    log.create_topic(name, "n INT")
    with log.producer(name) as producer:
        for n in range(3):
            producer.send({"n": n})
        with pytest.raises(UsageError):
            producer.send({"n": 99}, **marks)
        producer.send({"n": 3})
    assert [row["n"] for row in rows_of(log, name)] == [0, 1, 2, 3]


@pytest.mark.parametrize("row", [None, 5, [("n", 1)], {"n": object()}, {5: 6}, {"n": 1, None: 2}])
def test_whatever_is_sent_as_a_row_costs_only_itself(log: Log, name: str, row: Any) -> None:
    log.create_topic(name, "n INT")
    with log.producer(name, linger="1 millisecond", buffer=5) as producer:
        for n in range(20):
            producer.send({"n": n})
        producer.flush()
        producer.send(row)
        with pytest.raises(RowError):
            producer.flush()
        producer.send({"n": 20})
    assert [r["n"] for r in rows_of(log, name)] == list(range(21))


def test_a_batch_cannot_begin_with_a_negative_sequence(log: Log, name: str) -> None:
    log.create_topic(name, "n INT")
    with log.producer(name) as producer, pytest.raises(UsageError):
        producer.send_batch([{"n": 1}], sequence=-1)


def test_a_key_of_the_wrong_length_deletes_nothing(log: Log, name: str) -> None:
    log.create_topic(name, "k STRING, n INT", key="k", cleanup="compact")
    with log.producer(name) as producer:
        producer.send({"k": "a", "n": 1})
        with pytest.raises(HeadwaterError, match="key of topic"):
            producer.delete(["a", "b"])
    assert [row["_deleted"] for row in rows_of(log, name)] == [False]
