"""Which nodes share a query, and that one can leave it with what it knows."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from headwater import Pipeline, durable
from headwater.engine.batch import query_layout
from headwater.engine.home import checkpoint
from headwater.engine.home.versions import Version
from headwater.log import Position
from headwater.pipeline import targets

HERE = {"orders": Position("orders", {0: 3})}


@pytest.fixture
def shop(tmp_path: Path) -> Pipeline:
    shop = Pipeline("shop", log=f"file:{tmp_path}/data", home=tmp_path / "home")
    shop.source("orders", "id BIGINT")
    shop.sql("seen", "SELECT * FROM orders", key="id")
    shop.sql("ids", "SELECT id FROM orders", kind="stream")
    shop.sql("there", "SELECT * FROM orders", key="id", store="postgresql://ada:secret@db/x")

    @shop.sink(targets.foreach(lambda rows, batch: None))
    def told(orders: Any) -> Any:
        return orders

    return shop


def node_plan(shop: Pipeline, name: str) -> Any:
    return SimpleNamespace(node=shop[name])


def version(shop: Pipeline, name: str, number: int = 1) -> Version:
    return Version(number, shop.home / "nodes" / name / f"v{number}")


def place(shop: Pipeline, name: str, **more: Any) -> Path:
    options = {"share": True, **more}
    return query_layout.assigned_checkpoint(shop, node_plan(shop, name), version(shop, name), **options)


def test_nodes_of_one_store_share_and_the_others_are_alone(shop: Pipeline) -> None:
    assert place(shop, "seen") == place(shop, "ids") == shop.home / "queries" / "own-1"
    assert place(shop, "there").parent == shop.home / "queries"
    assert place(shop, "there") != place(shop, "seen")
    assert place(shop, "told") == shop.home / "nodes" / "told" / "v1" / "checkpoint"
    assert place(shop, "seen", share=False) == shop.home / "nodes" / "seen" / "v1" / "checkpoint"
    assert not shop.home.exists()


def test_no_secret_is_in_the_name_of_a_query(shop: Pipeline) -> None:
    other = Pipeline("shop", home=shop.home)
    other.source("orders", "id BIGINT")
    other.sql("there", "SELECT * FROM orders", key="id", store="postgresql://ada:other@db/x")
    assert place(shop, "there") == place(other, "there")


def test_a_node_that_comes_later_starts_a_query_of_its_own(shop: Pipeline) -> None:
    query_layout.attach(version(shop, "seen"), place(shop, "seen"))
    assert place(shop, "ids") == place(shop, "seen")  # which has not begun yet
    checkpoint.write_start(place(shop, "seen"), HERE)
    assert place(shop, "seen").name == "own-1"
    assert place(shop, "ids").name == "own-2"


def test_a_node_leaves_with_a_copy_of_the_checkpoint(shop: Pipeline) -> None:
    for name in ("seen", "ids"):
        query_layout.attach(version(shop, name), shop.home / "queries" / "own-1")
    checkpoint.write_start(place(shop, "seen"), HERE)
    (place(shop, "seen") / "metadata").write_text('{"id":"one"}')
    left = query_layout.detach(version(shop, "seen"))
    assert left == place(shop, "seen") != place(shop, "ids")
    assert checkpoint.read_start(left) == checkpoint.read_start(place(shop, "ids")) == HERE
    # Spark ends the older of two queries with one identifier.
    assert json.loads((left / "metadata").read_text())["id"] != "one"
    (left / "offsets").mkdir()
    assert not (place(shop, "ids") / "offsets").exists()


def test_a_query_that_no_node_shares_any_more_is_removed(shop: Pipeline) -> None:
    for name in ("seen", "ids"):
        query_layout.attach(version(shop, name), shop.home / "queries" / "own-1")
    query_layout.detach(version(shop, "seen"))
    query_layout.drop_unused(shop)
    assert place(shop, "ids").exists()
    query_layout.detach(version(shop, "ids"))
    query_layout.drop_unused(shop)
    assert not list((shop.home / "queries").iterdir())
    assert place(shop, "ids").exists()


def test_a_link_and_what_it_leads_to_are_durable_before_anything_is_run(
    shop: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[Path] = []
    monkeypatch.setattr(durable, "sync", synced.append)
    query, node = place(shop, "seen"), version(shop, "seen")
    query_layout.attach(node, query)
    assert query.parent in synced
    assert synced[-1] == node.home
    checkpoint.write_start(query, HERE)
    synced.clear()
    alone = query_layout.detach(node)
    draft = node.home / "alone.draft"
    assert {draft, draft / "begin.json", draft / "metadata"} <= set(synced)
    assert synced[-2:] == [node.home, node.home], "first the copy has its name, then the link leads there"
    assert (node.home / "checkpoint").resolve() == alone
