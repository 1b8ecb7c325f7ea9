"""Which version of a view is in force, also while its store cannot be asked, and when a node is given up."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater import Pipeline
from headwater.engine.home.versions import Rebuilding, Versions
from headwater.errors import SinkUnavailable, UsageError
from headwater.pipeline.node import Node
from headwater.views.postgres import PostgresStore


@pytest.fixture
def down(monkeypatch: pytest.MonkeyPatch) -> PostgresStore:
    monkeypatch.setattr("headwater.views.postgres.store.READ_SECONDS", 0.01)
    return PostgresStore("postgresql://127.0.0.1:1/nowhere")


@pytest.fixture
def pipeline(tmp_path: Path) -> Pipeline:
    shop = Pipeline("shop", log=f"file:{tmp_path}/data")
    shop.source("orders", "id BIGINT")
    shop.sql("seen", "SELECT * FROM orders", key="id")
    return shop


def seen(pipeline: Pipeline) -> Node:
    node = pipeline["seen"]
    assert isinstance(node, Node)
    return node


def test_while_a_store_is_down_the_only_version_that_left_anything_counts(
    pipeline: Pipeline, down: PostgresStore
) -> None:
    versions = Versions(pipeline, down)
    assert versions.current(seen(pipeline)).number == 1
    (pipeline.home / "nodes" / "seen" / "v3").mkdir(parents=True)
    assert versions.current(seen(pipeline)).number == 3


def test_while_a_store_is_down_nothing_is_guessed(pipeline: Pipeline, down: PostgresStore) -> None:
    for number in (1, 2):
        (pipeline.home / "nodes" / "seen" / f"v{number}").mkdir(parents=True)
    with pytest.raises(SinkUnavailable):
        Versions(pipeline, down).current(seen(pipeline))


def test_two_do_not_build_a_version_at_the_same_time(pipeline: Pipeline, down: PostgresStore) -> None:
    one, other = Rebuilding(pipeline, down), Rebuilding(pipeline, down)
    with (
        one.alone(seen(pipeline)),
        pytest.raises(UsageError, match='view "seen" is being built anew already'),
        other.alone(seen(pipeline)),
    ):
        pass
    with other.alone(seen(pipeline)):
        pass
    assert Versions(pipeline, down).current(seen(pipeline)).number == 1
