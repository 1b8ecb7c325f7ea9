"""Views of the demo, asked for over HTTP."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import headwater
from headwater import Pipeline
from headwater.cli.demo.served_views import ask_server, served_rows
from headwater.sinks import Batch
from headwater.views import ViewStore


@pytest.fixture
def shop(tmp_path: Path) -> Pipeline:
    """A pipeline whose view has more rows than a page."""
    pipeline = Pipeline("shop", log=f"file:{tmp_path}/log")
    with headwater.open(pipeline.log) as log:
        log.create_topic("orders", "item STRING")
    pipeline.home.mkdir(parents=True)
    rows = pa.table({"item": [f"item {number:05}" for number in range(2_500)], "count": list(range(2_500))})
    views = pipeline.home / "views.db"
    with ViewStore(views) as store, store.sink("stock", "item STRING, count BIGINT", "item") as sink:
        sink.begin()
        sink.commit(Batch(0, rows))
    return pipeline


def test_all_pages_of_a_view_are_its_rows(shop: Pipeline) -> None:
    with (
        headwater.open_server(shop, settings=headwater.ServeSettings(port=0)) as server,
        headwater.open_views(shop) as views,
    ):
        rows = served_rows(server.url, "stock")
        assert rows.num_rows == 2_500 and rows.equals(views["stock"].scan().to_table())


def test_views_that_are_what_they_are_in_their_store_are_told(
    shop: Pipeline, capsys: pytest.CaptureFixture[str]
) -> None:
    ask_server(shop)
    assert capsys.readouterr().out == "all views are over HTTP what they are in their store\n"
