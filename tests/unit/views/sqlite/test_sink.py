"""One commit of a view is one transaction, of the newest runner alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from headwater import Position
from headwater.errors import Fenced, RowError, UsageError
from headwater.sinks import Batch
from headwater.views import SqliteSink, ViewStore


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ViewStore]:
    with ViewStore(tmp_path / "views.db", durability="os") as store:
        yield store


def opened(store: ViewStore) -> SqliteSink:
    return store.sink("stock", "item STRING, n BIGINT", "item")


def batch(number: int, *rows: tuple[str, int | None, bool]) -> Batch:
    columns = {"item": [row[0] for row in rows], "n": [row[1] for row in rows]}
    deleted = [row[2] for row in rows]
    return Batch(
        number, pa.table({**columns, "_deleted": deleted}), (Position("orders", {0: number}),), number
    )


def test_a_batch_that_comes_again_changes_nothing(store: ViewStore) -> None:
    sink = opened(store)
    assert sink.begin() == -1
    assert sink.commit(batch(3, ("tea", 1, False)))
    assert not sink.commit(batch(3, ("tea", 99, False)))
    assert not sink.commit(batch(2, ("rum", 1, False)))
    assert store.view("stock").scan().to_pylist() == [{"item": "tea", "n": 1}]
    assert (store.view("stock").batch(), sink.receipt()) == (3, "3")


def test_of_one_key_the_last_row_counts_and_is_one_change(store: ViewStore) -> None:
    sink = opened(store)
    sink.begin()
    sink.commit(batch(0, ("tea", 1, False), ("tea", None, True), ("tea", 2, False), ("rum", 1, True)))
    sink.commit(batch(1, ("tea", 2, False)))
    assert [(each.kind, each.new) for each in store.view("stock").changes()] == [
        ("insert", {"item": "tea", "n": 2})
    ]


def test_a_runner_that_was_replaced_commits_nothing(store: ViewStore) -> None:
    older, newer = opened(store), opened(store)
    older.begin()
    newer.begin()
    with pytest.raises(Fenced, match="another runner has taken over"):
        older.commit(batch(0, ("tea", 1, False)))
    assert store.view("stock").count() == 0
    assert newer.commit(batch(0, ("tea", 2, False)))


def test_a_commit_that_fails_leaves_rows_changes_and_positions_as_they_were(store: ViewStore) -> None:
    sink = opened(store)
    sink.begin()
    sink.commit(batch(0, ("tea", 1, False)))
    view = store.view("stock")
    before = (view.scan().to_pylist(), view.sequence(), view.position(), view.watermark())
    with pytest.raises(RowError):
        sink.commit(Batch(1, pa.table({"item": ["tea", None], "n": [2, 2]})))
    assert (view.scan().to_pylist(), view.sequence(), view.position(), view.watermark()) == before
    assert sink.receipt() == "0"


def test_a_sink_begins_before_it_commits_and_misses_batches_that_are_gone(store: ViewStore) -> None:
    sink = opened(store)
    with pytest.raises(UsageError, match="has not begun"):
        sink.commit(batch(0, ("tea", 1, False)))
    sink.begin()
    sink.commit(batch(4, ("tea", 1, False)))
    assert opened(store).begin() == 4
    assert sink.resume("4") is None
    assert sink.resume("5") is not None
