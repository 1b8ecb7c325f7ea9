"""A pipeline that looks as if it had run, without Spark."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import headwater
from headwater import Pipeline
from headwater.sinks import Batch
from headwater.views import ViewStore

COLUMNS = "id BIGINT, item STRING"


@pytest.fixture
def shop(tmp_path: Path) -> Pipeline:
    """A pipeline whose view holds two rows, as if it had run."""
    made = Pipeline("shop", log=f"file:{tmp_path}/data")
    made.source("orders", COLUMNS)

    @made.view(key="id", on_error="dead_letter")
    def seen(orders):  # type: ignore[no-untyped-def]
        return orders

    with headwater.open(made.log) as log:
        log.create_topic("orders", COLUMNS)
        with log.producer("orders") as producer:
            producer.send_batch([{"id": 1, "item": "tea"}, {"id": 2, "item": "rum"}])
    made.home.mkdir(parents=True)
    with ViewStore(made.home / "views.db") as store, store.sink("seen", COLUMNS, "id") as sink:
        sink.begin()
        sink.commit(Batch(0, pa.table({"id": [1, 2], "item": ["tea", "rum"]})))
    return made


@pytest.fixture
def broken(tmp_path: Path) -> Pipeline:
    """A pipeline whose view reads what there is not."""
    made = Pipeline("broken", log=f"file:{tmp_path}/none")

    @made.view(key="id")
    def seen(oders):  # type: ignore[no-untyped-def]
        return oders

    return made
