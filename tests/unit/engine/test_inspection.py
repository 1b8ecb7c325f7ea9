"""A pipeline that is looked at: nothing is made, and what was in force when it was first seen stays so."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest

from headwater import Pipeline
from headwater.engine.home.view_locations import store_of, views_of
from headwater.engine.inspection import Inspection, Parts, check_runnable
from headwater.errors import UsageError
from headwater.log.open import open as open_log
from headwater.pipeline.node import Node


def shop(url: str, home: Path | None = None) -> Pipeline:
    pipeline = Pipeline("shop", log=url, home=home)
    pipeline.source("orders", "id BIGINT")
    pipeline.sql("seen", "SELECT id FROM orders", key="id")
    return pipeline


@pytest.fixture
def inspection(tmp_path: Path) -> Iterator[Inspection]:
    pipeline = shop(f"file:{tmp_path / 'log'}", tmp_path / "home")
    unused = cast(Any, None)  # Spark is for nodes alone
    store_of(pipeline).close()  # its runner makes it
    with Inspection(
        pipeline, Parts(open_log(pipeline.log), unused, unused, views_of(pipeline))
    ) as inspection:
        yield inspection


def rebuilt(inspection: Inspection) -> None:
    with store_of(inspection.pipeline) as store:
        for number in (1, 2):
            store.sink("seen", pa.schema([("id", pa.int64())]), "id", version=number).close()
        store.publish("seen", 2)


def files(inspection: Inspection) -> set[Path]:
    """Return what is in the pipeline's home, but for the store and what SQLite has beside it."""
    return {path for path in inspection.pipeline.home.rglob("*") if not path.name.startswith("views.db")}


def test_a_log_in_memory_is_refused_for_no_worker_can_read_it() -> None:
    with pytest.raises(UsageError, match="cannot run on a log in memory"):
        check_runnable(shop("memory:"))


def test_the_version_that_was_in_force_when_it_was_first_looked_at_stays(inspection: Inspection) -> None:
    assert inspection.version("seen").number == 1
    rebuilt(inspection)
    assert inspection.version("seen").number == 1


def test_a_version_that_was_published_before_is_the_one(inspection: Inspection) -> None:
    rebuilt(inspection)
    assert inspection.version("seen").number == 2
    assert inspection.version("seen").home.parts[-3:] == ("nodes", "seen", "v2")


def test_an_inspection_makes_nothing(inspection: Inspection) -> None:
    node = inspection.pipeline["seen"]
    assert isinstance(node, Node)
    inspection.version("seen")
    assert (inspection.late_topic(node), inspection.dead_letters(node).topic) == (
        "shop.seen.late",
        "shop.seen.dead",
    )
    assert inspection.log.topics() == []
    assert files(inspection) == set()


def test_what_is_no_node_is_refused(inspection: Inspection) -> None:
    with pytest.raises(UsageError, match='source "orders" is no node'):
        inspection.version("orders")
