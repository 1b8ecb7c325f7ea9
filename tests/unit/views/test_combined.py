"""Views in several stores, as one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from headwater.errors import UsageError
from headwater.sinks import Batch
from headwater.views import Store, ViewStore
from headwater.views.combined import CombinedStore


@pytest.fixture
def own(tmp_path: Path) -> ViewStore:
    return ViewStore(tmp_path / "own.db")


@pytest.fixture
def other(tmp_path: Path) -> ViewStore:
    return ViewStore(tmp_path / "other.db")


@pytest.fixture
def both(own: ViewStore, other: ViewStore) -> Iterator[CombinedStore]:
    """``moved`` and ``shared`` are kept in the other store, all else in the own one."""
    with CombinedStore(own, {"moved": other, "shared": other}) as both:
        yield both


def fill(store: Store, view: str, number: int) -> None:
    sink = store.sink(view, "id BIGINT", "id")
    sink.begin()
    sink.commit(Batch(0, pa.table({"id": [number]})))


def test_each_view_is_written_and_read_in_its_own_place(
    both: CombinedStore, own: ViewStore, other: ViewStore
) -> None:
    for number, name in enumerate(("stock", "moved", "shared")):
        fill(both, name, number)
    assert (own.names(), other.names()) == (["stock"], ["moved", "shared"])
    assert both.names() == ["moved", "shared", "stock"]
    assert [both[name].scan().to_pylist() for name in both.names()] == [[{"id": 1}], [{"id": 2}], [{"id": 0}]]


def test_a_view_that_was_moved_is_not_read_where_it_was(both: CombinedStore, own: ViewStore) -> None:
    fill(own, "moved", 7)
    assert both.names() == []
    with pytest.raises(UsageError, match='no view "moved"'):
        both.view("moved")


def test_versions_are_published_and_dropped_in_the_place_of_the_view(
    both: CombinedStore, own: ViewStore, other: ViewStore
) -> None:
    fill(own, "moved", 7)
    fill(both, "moved", 1)
    both.sink("moved", "id BIGINT, n BIGINT", "id", version=2).begin()
    both.index_by("moved", "n", version=2)
    both.publish("moved", 2)
    both.drop("moved", 1)
    assert both.versions("moved") == other.versions("moved") == {2: True}
    assert own.versions("moved") == {1: True}


def test_all_stores_are_closed_together(both: CombinedStore, own: ViewStore, other: ViewStore) -> None:
    both.close()
    for store in (own, other):
        with pytest.raises(UsageError, match="is closed"):
            store.sink("stock", "id BIGINT", "id")
