"""A pipeline at a glance: while it runs, when it has ended, and before it ever ran."""

from __future__ import annotations

from pathlib import Path

import pytest

import headwater
from figures_kit import ACCOUNTING, note, orders_shop
from headwater import NodeOverview, Pipeline, PipelineOverview
from headwater.api.figures.overview import runner_of
from headwater.errors import HeadwaterError


@pytest.fixture
def shop(tmp_path: Path) -> Pipeline:
    return orders_shop(tmp_path)


def node(found: PipelineOverview, name: str) -> NodeOverview:
    return next(each for each in found.nodes if each.name == name)


def test_of_one_that_runs_the_figures_are_those_that_its_runner_has_noted(shop: Pipeline) -> None:
    note(shop)
    found = headwater.overview(shop)
    seen, orders = node(found, "seen"), node(found, "orders")
    assert found.running and found.noted is not None
    assert (seen.state, seen.rate, seen.lag, seen.batch_seconds) == ("running", 12.5, 7, 0.25)
    assert (orders.state, orders.rate, orders.accounting.rows, orders.clock) == (
        "running",
        12.5,
        2,
        4_000_000,
    )
    assert node(found, "copies").state == "starting", "nothing was noted of it"
    assert [each.name for each in found.nodes] == ["orders", "seen", "copies"]


def test_of_one_that_has_ended_the_figures_are_those_that_its_nodes_have_committed(shop: Pipeline) -> None:
    note(shop, ended=True)
    found = headwater.overview(shop)
    seen, orders = node(found, "seen"), node(found, "orders")
    assert not found.running
    assert (seen.state, seen.rate, seen.lag, seen.view_rows) == ("stopped", 0.0, 0, 2)
    assert seen.accounting == ACCOUNTING
    assert (orders.state, orders.accounting.rows) == ("stopped", 2)


def test_a_node_that_was_broken_when_its_runner_ended_is_broken(shop: Pipeline) -> None:
    note(shop, ended=True, state="broken", error=HeadwaterError("it failed"))
    seen = node(headwater.overview(shop), "seen")
    assert (seen.state, seen.to_dict()["error"]) == ("broken", "it failed")


def test_one_that_has_never_run_is_told_by_its_declaration_alone(tmp_path: Path) -> None:
    shop = Pipeline("new", log=f"file:{tmp_path}/data")
    shop.source("orders", "id BIGINT")
    shop.sql("seen", "SELECT * FROM orders", key="id")
    found = headwater.overview(shop)
    assert (found.running, found.noted) == (False, None)
    assert [(each.name, each.state) for each in found.nodes] == [("orders", "stopped"), ("seen", "stopped")]
    assert runner_of(shop) is None


def test_as_json_the_rows_of_every_node_add_up(shop: Pipeline) -> None:
    note(shop)
    for each in headwater.overview(shop).to_dict()["nodes"]:
        assert each["rows"] == each["used"] + each["late"] + each["duplicates"] + each["dead"]
        assert set(each) == {
            *("name", "kind", "doc", "upstreams", "key", "topic", "state", "rows", "rate", "out", "late"),
            *("duplicates", "dead", "used", "lag", "clock", "waits_for", "batch_seconds", "state_bytes"),
            "memory_bytes",
            *("error", "alert", "view_rows"),
        }


def test_the_last_runner_is_seen_while_it_runs_and_when_it_has_ended(shop: Pipeline) -> None:
    note(shop)
    seen = runner_of(shop)
    assert seen is not None and seen.running and seen.ended is None
    note(shop, ended=True)
    seen = runner_of(shop)
    assert seen is not None and not seen.running and seen.ended is not None
