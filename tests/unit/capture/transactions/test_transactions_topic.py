"""Which transactions are whole, and up to where."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import headwater
from changes_kit import CAPTURED, CUSTOMERS, changes
from headwater.capture.change import Delivery, TableChanges, Transactions, Truncation
from headwater.capture.state import CaptureState
from headwater.capture.transactions.transactions_topic import TransactionsTopic, parts
from headwater.capture.writing.table_writer import TableWriter
from headwater.errors import TopicError
from headwater.log import Log

OTHERS = replace(CUSTOMERS, name="others")


@pytest.fixture
def log() -> Iterator[Log]:
    with headwater.open("memory:") as opened:
        yield opened


class Ordered:
    """A source whose positions are texts in their order."""

    def passed(self, position: str, other: str) -> bool:
        return position >= other

    def end_first_at(self, position: str) -> None:
        pass


def topic(log: Log, **state: Any) -> TransactionsTopic:
    return TransactionsTopic(log, "crm", Ordered(), CaptureState("", **state))  # type: ignore[arg-type]


def told(log: Log) -> list[tuple[str, int, dict[str, dict[int, int]]]]:
    rows = [row for part in log.read("crm.transactions") for row in part.to_pylist()]
    return [
        (row["transaction"], row["changes"], {name: dict(end) for name, end in row["ends"]}) for row in rows
    ]


def numbered(*transactions: int, total: int = 4) -> TableChanges:
    """Return insertions of some transactions of a delivery."""
    once = Transactions(
        tuple(f"t{number}" for number in range(total)),
        tuple(f"{number:08d}" for number in range(total)),
        np.arange(total, dtype=np.int64),
    )
    made = changes(*(("insert", number, "a") for number in range(len(transactions))))
    of = np.array(transactions, np.int64)
    return replace(made, transactions=once, transaction=of, index=np.arange(len(of)))


def take(told: TransactionsTopic, delivery: Delivery, whole: bool, writers: list[TableWriter]) -> None:
    """Write a delivery to one table, as a capture does."""
    for part in parts(delivery, whole):
        told.begin(part)
        if part.alone:
            flush(told, writers)
        for each in part.delivery.changes:
            assert isinstance(each, TableChanges)
            writers[0].write(each)
            told.count("customers", each, events=False)
        told.end(part)


def flush(told: TransactionsTopic, writers: list[TableWriter]) -> None:
    for each in writers:
        each.flush()
    told.write(writers)


def test_a_delivery_is_cut_before_what_is_not_whole() -> None:
    one, other = numbered(0, 0, 1, 2, 2), replace(numbered(1, 2), table=OTHERS)
    [whole] = parts(Delivery((one, other)), whole=True)
    assert (whole.alone, whole.whole, whole.delivery.changes) == (False, True, (one, other))
    before, last = parts(Delivery((one, other)), whole=False)
    assert [len(each) for each in before.delivery.changes] == [3, 1]
    assert [len(each) for each in last.delivery.changes] == [2, 1]
    assert (before.alone, before.whole, last.alone, last.whole) == (False, True, True, False)


def test_a_table_is_emptied_in_a_part_of_its_own() -> None:
    one = numbered(0, 1, 1, 3)
    emptied = Truncation(CUSTOMERS, one.transactions, 1, 2)
    found = list(parts(Delivery((one.part(0, 3), emptied, one.part(3, 4))), whole=True))
    assert [[len(each) for each in part.delivery.changes] for part in found] == [[1], [2, 1], [1]]
    assert [part.alone for part in found] == [False, True, False]


def test_transactions_are_told_with_their_changes_when_they_are_whole(log: Log) -> None:
    with topic(log) as made, TableWriter(log, "crm", CAPTURED, 0) as writer:
        take(made, Delivery((numbered(0, 0, 2, 3),)), False, [writer])
        assert told(log) == [("t0", 2, {"customers": {0: 3}}), ("t2", 1, {"customers": {0: 3}})]
        assert made.open_changes == {"customers": 1}
        more = numbered(0, 0, 1)
        once = replace(more.transactions, id=("t3", "t9", "t", "t"))
        take(made, Delivery((replace(more, transactions=once),)), True, [writer])
        assert len(told(log)) == 2
        flush(made, [writer])
        assert told(log)[2:] == [("t3", 3, {"customers": {0: 7}}), ("t9", 1, {"customers": {0: 7}})]


def test_the_end_of_a_transaction_may_come_alone(log: Log) -> None:
    with topic(log) as made, TableWriter(log, "crm", CAPTURED, 0) as writer:
        take(made, Delivery((numbered(0, total=1),)), False, [writer])
        made.pass_position(None)
        flush(made, [writer])
        assert told(log) == []
        made.pass_position("00000001")
        flush(made, [writer])
        assert told(log) == [("t0", 1, {"customers": {0: 1}})]


def test_what_was_told_is_not_told_again_and_what_was_stored_since_is_behind_the_ends(log: Log) -> None:
    delivered = numbered(0, 1, 1, 2)
    with topic(log) as made, TableWriter(log, "crm", CAPTURED, 0) as writer:
        take(made, Delivery((delivered.part(0, 1),)), True, [writer])
        flush(made, [writer])
        take(made, Delivery((delivered.part(1, 4),)), True, [writer])  # stored, and not told: it is killed
    with topic(log, transactions_since=0) as again, TableWriter(log, "crm", CAPTURED, 0) as writer:
        take(again, Delivery((delivered.part(0, 3),)), True, [writer])
        flush(again, [writer])
        assert told(log) == [("t0", 1, {"customers": {0: 1}}), ("t1", 2, {"customers": {0: 3}})]
        take(again, Delivery((delivered.part(3, 4),)), True, [writer])
        flush(again, [writer])
    assert told(log)[2:] == [("t2", 1, {"customers": {0: 4}})]


def test_how_much_of_a_transaction_is_stored_is_remembered(log: Log) -> None:
    with (
        topic(log, open_changes={"customers": 5}) as made,
        TableWriter(log, "crm", CAPTURED, 0) as writer,
    ):
        take(made, Delivery((numbered(0, 1),)), True, [writer])
        flush(made, [writer])
    assert [(id, count) for id, count, _ in told(log)] == [("t0", 6), ("t1", 1)]


def test_a_topic_of_something_else_is_refused(log: Log) -> None:
    log.create_topic("crm.transactions", pa.schema({"id": pa.int64()}))
    with pytest.raises(TopicError, match="does not hold the transactions"):
        topic(log)


def test_a_topic_that_was_deleted_is_read_from_its_beginning(log: Log) -> None:
    with TableWriter(log, "crm", CAPTURED, None) as writer:
        with topic(log, transactions_since=7) as made:
            take(made, Delivery((numbered(0, 1),)), True, [writer])
            flush(made, [writer])
            assert made.since == 0
        writer.sequence = 0  # as if the state had not been saved
        with topic(log, transactions_since=made.since) as again:
            take(again, Delivery((numbered(0, 1),)), True, [writer])
            flush(again, [writer])
    assert [each[0] for each in told(log)] == ["t0", "t1"]
