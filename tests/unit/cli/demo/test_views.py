"""What the demo shows of its views."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from headwater import Pipeline
from headwater.cli.demo.views import ROWS, view_samples
from headwater.sinks import Batch
from headwater.views import ViewStore


def shop(tmp_path: Path) -> Pipeline:
    """A pipeline with two views, of which one is there by now."""
    made = Pipeline("shop", log=f"file:{tmp_path}/data")
    made.source("orders", "id BIGINT")

    @made.view(key="customer")
    def spending(orders: object) -> None:
        """What each customer has spent."""

    made.sql("later", "SELECT * FROM orders", key="id")
    return made


def fill(pipeline: Pipeline, count: int) -> None:
    pipeline.home.mkdir(parents=True)
    rows = pa.table({"customer": [f"c{n}" for n in range(count)], "total": list(range(count))})
    with ViewStore(pipeline.home / "views.db") as store:
        sink = store.sink("spending", "customer STRING, total BIGINT", "customer")
        sink.begin()
        sink.commit(Batch(0, rows))


def test_before_there_are_views_nothing_is_shown_and_nothing_made(tmp_path: Path) -> None:
    assert view_samples(shop(tmp_path)) == []
    assert list(tmp_path.iterdir()) == []


def test_a_view_that_is_not_there_yet_is_left_out(tmp_path: Path) -> None:
    pipeline = shop(tmp_path)
    fill(pipeline, 2)
    [view] = view_samples(pipeline)
    assert (view.name, view.count, view.description) == ("spending", 2, "What each customer has spent.")


def test_the_first_rows_are_those_with_the_most(tmp_path: Path) -> None:
    pipeline = shop(tmp_path)
    fill(pipeline, 2 * ROWS)
    [view] = view_samples(pipeline)
    assert view.count == 2 * ROWS
    assert [total for _, total in view.rows] == [str(n) for n in reversed(range(ROWS, 2 * ROWS))]
