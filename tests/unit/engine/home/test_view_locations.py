"""Where the views of a pipeline are looked for, with its file and without."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from headwater import Pipeline
from headwater.engine.home.view_locations import store_of, views_in, views_of
from headwater.errors import PipelineError, SinkUnavailable
from headwater.sinks import Batch
from headwater.views import Store, ViewStore
from headwater.views.combined import CombinedStore

NOWHERE = "postgresql://shop:geheim@127.0.0.1:1/shop?sslpassword=geheim"


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headwater.views.postgres.store.READ_SECONDS", 0.01)


def shop(tmp_path: Path, views: str | None = None, store: str | None = None) -> Pipeline:
    made = Pipeline("shop", log=f"file:{tmp_path}/data", views=views)
    made.source("orders", "id BIGINT")
    made.sql("near", "SELECT * FROM orders", key="id")
    made.sql("far", "SELECT * FROM orders", key="id", store=store)
    return made


def put(store: Store, view: str, number: int = 0) -> None:
    sink = store.sink(view, "id BIGINT", "id")
    sink.begin()
    sink.commit(Batch(number, pa.table({"id": [number]})))


def test_views_that_name_no_store_are_in_the_home(tmp_path: Path) -> None:
    pipeline = shop(tmp_path)
    with store_of(pipeline) as store:
        put(store, "near")
        put(store, "far")
    with views_of(pipeline) as with_file, views_in(pipeline.home) as without:
        assert with_file.names() == without.names() == ["far", "near"]
    assert not (pipeline.home / "places.json").exists()


@pytest.mark.parametrize("how", [{"views": NOWHERE}, {"store": NOWHERE}])
def test_what_is_elsewhere_is_noted_without_its_password(tmp_path: Path, how: dict[str, str]) -> None:
    pipeline = shop(tmp_path, **how)
    store_of(pipeline).close()
    noted = (pipeline.home / "places.json").read_text()
    assert "geheim" not in noted and "127.0.0.1" in noted and '"far"' in noted
    with views_in(pipeline.home) as views, pytest.raises(SinkUnavailable) as caught:
        views["far"]
    assert "geheim" not in str(caught.value) and NOWHERE not in repr(pipeline["far"])


def test_views_that_are_here_are_read_though_others_cannot_be(tmp_path: Path) -> None:
    pipeline = shop(tmp_path, store=NOWHERE)
    with store_of(pipeline) as store:
        put(store, "near")
    with views_in(pipeline.home) as views:
        assert views["near"].count() == 1


def test_a_view_that_was_moved_is_read_in_its_new_place_alone(tmp_path: Path) -> None:
    with ViewStore(tmp_path / "old.db") as old, ViewStore(tmp_path / "new.db") as new:
        for view in ("moved", "stays"):
            put(old, view)
        put(new, "moved", 7)
        put(new, "of_somebody_else")
        placed = CombinedStore(old, {"moved": new, "unborn": new})
        assert placed.names() == ["moved", "stays"]
        assert placed["moved"].scan().to_pylist() == [{"id": 7}]
        placed.drop("moved")
        assert old.names() == ["moved", "stays"]


@pytest.mark.parametrize("url", ["mysql://shop:geheim@db/shop", "views.db", "shop:geheim@db", 7])
def test_a_store_that_cannot_be_meant_is_refused_where_it_is_declared(tmp_path: Path, url: str) -> None:
    for how in ({"views": url}, {"store": url}):
        with pytest.raises(PipelineError, match="a view store") as caught:
            shop(tmp_path, **how)
        assert "geheim" not in str(caught.value)
        assert "test_view_locations.py" in str(caught.value)
