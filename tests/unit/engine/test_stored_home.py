"""A home in a store: what may be kept there, and where states are."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.sql import DataFrame

from headwater import Pipeline
from headwater.engine.files.local_files import LocalFiles
from headwater.engine.stored_home import HomePublisher, check_storable, state_files
from headwater.errors import PipelineError
from headwater.pipeline import targets


def shop(home: str | None, views: str | None = None) -> Pipeline:
    pipeline = Pipeline("shop", home=home, views=views)
    pipeline.source("orders", "id BIGINT")

    @pipeline.view(key="id")
    def newest(orders: DataFrame) -> DataFrame:
        return orders

    return pipeline


def test_views_in_sqlite_are_refused_where_they_would_be_lost_with_the_machine() -> None:
    check_storable(shop(None))
    check_storable(shop("s3://bucket/shop", "postgresql://db/shop"))
    with pytest.raises(PipelineError, match='view "newest" cannot be kept in a home in an object store'):
        check_storable(shop("s3://bucket/shop"))


def test_deliveries_are_refused_because_their_outbox_would_be_lost() -> None:
    pipeline = Pipeline("shop", home="s3://bucket/shop")
    pipeline.source("orders", "id BIGINT")

    @pipeline.sink(
        targets.webhook("https://example.org/orders", "whsec_YSBzZWNyZXQgb2YgdGhlIHRlc3RzLCBubyBtb3Jl")
    )
    def told(orders: DataFrame) -> DataFrame:
        return orders

    with pytest.raises(PipelineError, match='sink "told" cannot be kept'):
        check_storable(pipeline)


def test_a_state_in_a_store_has_a_folder_that_no_other_had(tmp_path: Path) -> None:
    home = tmp_path / "nodes" / "totals" / "v2"
    home.mkdir(parents=True)
    first = state_files(home, "s3://bucket/shop").location
    assert first.startswith("s3://bucket/shop/nodes/totals/v2/")
    assert state_files(home, "s3://bucket/shop").location == first
    shutil.rmtree(home)
    home.mkdir()
    assert state_files(home, "s3://bucket/shop").location != first


def test_a_state_on_a_disk_is_below_its_home(tmp_path: Path) -> None:
    assert state_files(tmp_path, None) == LocalFiles(tmp_path / "state")


def test_a_home_on_a_disk_is_published_by_being_there(tmp_path: Path) -> None:
    publisher = HomePublisher(Pipeline("shop", home=tmp_path))
    publisher.take()
    publisher.publish(tmp_path)
    publisher.close()
    assert list(tmp_path.iterdir()) == []
