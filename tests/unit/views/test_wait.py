"""Waiting until a view has got as far as a reader needs."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from headwater import Position
from headwater.errors import Behind, TopicReplaced, UsageError
from headwater.sinks import Batch
from headwater.views import SqliteSink, View, ViewStore
from headwater.views.reading import Reading
from headwater.views.wait import wait

ROWS = pa.table({"id": [1]})


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ViewStore]:
    with ViewStore(tmp_path / "views.db") as store:
        yield store


@pytest.fixture
def sink(store: ViewStore) -> SqliteSink:
    sink = store.sink("stock", "id BIGINT", "id")
    sink.begin()
    return sink


@pytest.fixture
def reading(store: ViewStore, sink: SqliteSink) -> Iterator[Reading]:
    view: View = store.view("stock")
    with view._lend() as reading:
        yield reading


def test_what_is_committed_while_nobody_looks_is_seen_by_the_next_look(
    sink: SqliteSink, reading: Reading
) -> None:
    wanted = Position("orders", {0: 3, 1: 1})
    with pytest.raises(Behind):
        wait(reading, wanted, 0)
    sink.commit(Batch(0, ROWS, (Position("orders", {0: 3}),)))
    with pytest.raises(Behind, match="1 records are missing"):
        wait(reading, wanted, 0)
    sink.commit(Batch(1, ROWS, (Position("orders", {0: 5, 1: 1}),)))
    wait(reading, wanted, 0)


def test_a_view_that_has_read_nothing_lacks_everything(reading: Reading) -> None:
    with pytest.raises(Behind, match="5 records are missing"):
        wait(reading, Position("orders", {0: 3, 1: 2}), 0)
    wait(reading, Position("orders", {}), 0)


class Carried:
    """Streams that have read a topic up to an offset, and written as many records to another."""

    def __init__(self, source: str, derived: str, done: int):
        self.source, self.derived, self.done = source, derived, done

    def carried(self, wanted: Position, inputs: Collection[str]) -> list[Position] | None:
        if wanted.topic != self.source or self.derived not in inputs:
            return []
        return [Position(self.derived, {0: self.done})] if wanted.offsets[0] <= self.done else None


def test_what_was_written_upstream_is_waited_for_by_what_streams_made_of_it(
    sink: SqliteSink, reading: Reading
) -> None:
    streams, wanted = Carried("replies", "events", 2), Position("replies", {0: 2})
    with pytest.raises(Behind, match="2 records are missing"):  # it has not read anything yet
        wait(reading, wanted, 0, upstream=streams)
    sink.commit(Batch(0, ROWS, (Position("events", {0: 1}),)))
    with pytest.raises(Behind, match='up to "events:0=1", not up to "events:0=2"'):
        wait(reading, wanted, 0, upstream=streams)
    sink.commit(Batch(1, ROWS, (Position("events", {0: 2}),)))
    wait(reading, wanted, 0, upstream=streams)
    with pytest.raises(Behind, match='has not got to "replies:0=3"'):
        wait(reading, Position("replies", {0: 3}), 0.05, upstream=streams)
    with pytest.raises(UsageError, match='does not read topic "orders"'):
        wait(reading, Position("orders", {0: 1}), 0, upstream=streams)


def test_a_topic_that_the_view_does_not_read_is_not_waited_for(sink: SqliteSink, reading: Reading) -> None:
    sink.commit(Batch(0, ROWS, (Position("orders", {0: 3}),)))
    with pytest.raises(UsageError, match='does not read topic "oders"') as refused:
        wait(reading, Position("oders", {0: 1}), 60)
    assert refused.value.hint == 'did you mean "orders"?'


def test_a_place_in_another_topic_of_the_same_name_is_refused(sink: SqliteSink, reading: Reading) -> None:
    sink.commit(Batch(0, ROWS, (Position("orders", {0: 3}, "one"),)))
    wait(reading, Position("orders", {0: 3}, "one"), 0)
    wait(reading, Position("orders", {0: 3}), 0)
    with pytest.raises(TopicReplaced):
        wait(reading, Position("orders", {0: 1}, "two"), 60)
