"""Rows that are numbered, and the first that does not fit."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.cli.contents import rows

import headwater
from headwater import Log
from headwater.cli.append import Appending, BadRow, appending

IDS = st.lists(st.none() | st.integers(0, 99), max_size=12)


def batch(ids: list[int | None]) -> pa.RecordBatch:
    return pa.record_batch({"id": pa.array(ids, pa.int64())})


@given(st.lists(IDS, max_size=4))
def test_every_row_before_the_bad_one_is_there_and_none_after_it(batches: list[list[int | None]]) -> None:
    flat = [each for ids in batches for each in ids]
    good = flat[: flat.index(None)] if None in flat else flat
    with headwater.open("memory:") as log:
        topic = log.create_topic("orders", "id BIGINT NOT NULL")
        with log.producer("orders") as producer:
            adding = Appending(producer, topic)
            try:
                for ids in batches:
                    adding.add(batch(ids))
            except BadRow as bad:
                assert bad.number == len(good) + 1
            else:
                assert good == flat
        assert adding.done == len(good)
        assert rows(log, "orders", "id") == good


def test_a_tombstone_among_rows_deletes_its_key_in_order(log: Log) -> None:
    topic = log.create_topic("customers", "id BIGINT, name STRING", key="id", cleanup="compact")
    deleted = [None, True, True, False]
    made = pa.record_batch({"id": [1, 1, 2, 2], "name": ["a", None, None, "b"], "_deleted": deleted})
    with log.producer("customers") as producer:
        Appending(producer, topic).add(made)
    assert rows(log, "customers", "_deleted") == [False, True, True, False]


def test_a_tombstone_is_refused_where_nothing_is_deleted_by_key(orders: Log) -> None:
    with orders.producer("orders") as producer:
        adding = Appending(producer, orders.topic("orders"))
        with pytest.raises(BadRow, match="not compacted") as refused:
            adding.add(pa.record_batch({"id": [1, 2], "_deleted": [False, True]}))
    assert (refused.value.number, rows(orders, "orders", "id")) == (2, [1])


def test_what_a_named_producer_has_sent_before_is_not_counted_as_added(
    orders: Log, capsys: pytest.CaptureFixture[str]
) -> None:
    for ids in ([1, 2], [1, 2, 3]):
        with appending(orders, orders.topic("orders"), "import") as adding:
            adding.add(batch(list(ids)))
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("2 rows in ")
    assert second.startswith("1 of 3 rows added, 2 were there already, in ")
    assert rows(orders, "orders", "id") == [1, 2, 3]
