"""Rows and the number of the change up to which they are, of one moment, in every store."""

from __future__ import annotations

import threading
from typing import Any

import pyarrow as pa
import pytest

from headwater.errors import UsageError
from headwater.sinks import Batch, Sink
from headwater.views import Store, View, open_views

Rows = dict[tuple[Any, ...], dict[str, Any]]


def put(sink: Sink, number: int, rows: dict[int, int | None]) -> None:
    table = {
        "id": pa.array(list(rows), pa.int64()),
        "n": pa.array(list(rows.values()), pa.int64()),
        "_deleted": [n is None for n in rows.values()],
    }
    sink.commit(Batch(number, pa.table(table)))


def begun(store: Store, version: int | None = None) -> Sink:
    sink = store.sink("counter", "id BIGINT, n BIGINT", "id", version=version)
    sink.begin()
    return sink


def snapshot(view: View, prefix: Any = None) -> tuple[int, Rows]:
    with view.snapshot(prefix) as taken:
        rows = [row for batch in taken.batches for row in batch.to_pylist()]
    return taken.sequence, {(row["id"],): row for row in rows}


def followed(view: View, since: int, rows: Rows) -> Rows:
    """Return the rows after the changes that follow; each must fit what it changes."""
    for change in view.changes(since=since):
        assert rows.pop(change.key, None) == change.old
        if change.new is not None:
            rows[change.key] = change.new
    return rows


def test_rows_and_the_changes_that_follow_are_the_view(store: Store) -> None:
    sink = begun(store)
    put(sink, 0, {1: 1, 2: 2})
    sequence, rows = snapshot(store["counter"])
    put(sink, 1, {1: 5, 2: None, 3: 3})
    assert followed(store["counter"], sequence, rows) == snapshot(store["counter"])[1]


def test_an_empty_view_has_a_number_to_follow_from(store: Store) -> None:
    sink = begun(store)
    assert snapshot(store["counter"]) == (0, {})
    put(sink, 0, {1: 1})
    assert [change.sequence for change in store["counter"].changes(since=0)] == [1]


def test_a_prefix_takes_its_rows_and_an_unfit_one_is_refused(store: Store) -> None:
    put(begun(store), 0, {1: 1, 2: 2})
    assert snapshot(store["counter"], 2) == (2, {(2,): {"id": 2, "n": 2}})
    with pytest.raises(UsageError, match='column "id"'), store["counter"].snapshot("x"):
        pass


def test_the_numbers_of_a_rebuilt_view_are_of_its_version(store: Store) -> None:
    put(begun(store), 0, {1: 1})
    put(begun(store, version=2), 0, {1: 2})
    store.publish("counter", 2)
    sequence, rows = snapshot(store["counter"])
    assert sequence >> 40 == 1 and rows == {(1,): {"id": 1, "n": 2}}
    assert list(store["counter"].changes(since=sequence)) == []


def test_a_snapshot_while_a_runner_commits_misses_and_repeats_nothing(store: Store, place: str) -> None:
    sink = begun(store)
    put(sink, 0, {0: 0})

    def commit() -> None:
        for number in range(1, 60):
            put(sink, number, {0: number, number: number, number - 3: None})

    runner = threading.Thread(target=commit)
    runner.start()
    with open_views(place) as views:
        view, taken = views["counter"], []
        while runner.is_alive() or not taken:
            taken.append(snapshot(view))
        runner.join()
        final = snapshot(view)[1]
        assert all(followed(view, *each) == final for each in taken)
