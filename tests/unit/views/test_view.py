"""Reading a view that a runner writes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from headwater import Position
from headwater.errors import Behind, UsageError
from headwater.sinks import Batch
from headwater.views import ViewStore


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ViewStore]:
    """A view that has read up to offset 3."""
    with ViewStore(tmp_path / "views.db") as store:
        sink = store.sink("stock", "shop STRING, item BIGINT, n BIGINT", ("shop", "item"))
        sink.begin()
        rows = pa.table({"shop": ["b", "a", "a"], "item": [1, 2, 1], "n": [7, 8, 9]})
        sink.commit(Batch(4, rows, (Position("orders", {0: 3}),), watermark=50))
        yield store


def test_a_view_tells_its_columns_and_how_far_it_is(store: ViewStore) -> None:
    view = store.view("stock")
    assert (view.key, view.schema.names, view.version) == (("shop", "item"), ["shop", "item", "n"], 1)
    assert (view.batch(), view.watermark(), view.count()) == (4, 50, 3)
    assert view.position() == (Position("orders", {0: 3}),)


def test_a_row_is_got_by_its_whole_key(store: ViewStore) -> None:
    view = store.view("stock")
    assert view.get(("a", 2)) == view.get({"item": 2, "shop": "a"}) == {"shop": "a", "item": 2, "n": 8}
    assert view.get(("a", 3)) is None
    with pytest.raises(UsageError):
        view.get("a")


def test_a_scan_can_be_read_again_and_without_rows_has_its_columns(store: ViewStore) -> None:
    scan = store.view("stock").scan("a")
    assert scan.to_pylist() == scan.to_table().to_pylist()
    assert [row["item"] for row in scan.to_pylist()] == [1, 2]
    assert store.view("stock").scan("z").to_table().schema.names == ["shop", "item", "n"]
    assert store.view("stock").scan("z").to_table().num_rows == 0


def test_a_read_waits_for_what_is_there_and_not_for_ever_for_what_is_not(store: ViewStore) -> None:
    view = store.view("stock")
    assert view.count(wait_for=Position("orders", {0: 3}), timeout=0) == 3
    with pytest.raises(Behind, match="has not caught up"):
        view.get(("a", 1), wait_for=Position("orders", {0: 4}), timeout=0)


def test_who_has_waited_before_is_told_for_how_long_in_all(store: ViewStore) -> None:
    view = store.view("stock")
    view.wait(Position("orders", {0: 3}), timeout=0)
    with pytest.raises(Behind, match="within 7 seconds"):
        view.wait(Position("orders", {0: 4}), timeout=0, waited=7.0)


def test_a_view_that_there_is_not_is_told_at_once(store: ViewStore) -> None:
    with pytest.raises(UsageError, match='no view "stok"'):
        store.view("stok")


def test_the_next_read_after_a_switch_is_of_the_new_version(store: ViewStore) -> None:
    view = store.view("stock")
    store.sink("stock", "id BIGINT", "id", version=2).begin()
    assert view.version == 1
    store.publish("stock", 2)
    assert (view.version, view.key, view.count()) == (2, ("id",), 0)
