"""Which pipeline is meant: one at hand, or that of a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater import Pipeline
from headwater.api.subject import checked, log_of, node_of, part_of, pipeline_of, timed_topic, view_names
from headwater.errors import PipelineError, UsageError


def test_a_pipeline_is_itself_and_a_path_is_the_pipeline_of_its_file(shop: Pipeline, tmp_path: Path) -> None:
    file = tmp_path / "stall.py"
    file.write_text("from headwater import Pipeline\n\nstall = Pipeline('stall')\n")
    assert pipeline_of(shop) is shop
    assert pipeline_of(file).name == pipeline_of(str(file)).name == "stall"


def test_what_does_not_fit_together_is_found_but_not_passed(broken: Pipeline) -> None:
    assert pipeline_of(broken) is broken
    with pytest.raises(PipelineError, match="oders"):
        checked(broken)


def test_of_an_input_it_is_said_what_is_refused(shop: Pipeline) -> None:
    assert node_of(shop, "seen", "sleeps").name == "seen"
    with pytest.raises(UsageError, match='source "orders" sleeps'):
        node_of(shop, "orders", "sleeps")


def test_the_log_is_that_of_the_pipelines_or_the_one_that_is_named(tmp_path: Path) -> None:
    here, there = Pipeline("a", log=f"file:{tmp_path}/a"), Pipeline("b", log=f"file:{tmp_path}/b")
    assert log_of([here]) == f"file:{tmp_path}/a"
    assert log_of([], "file:data") == f"file:{Path('data').absolute()}" == log_of([])
    for pipelines, log in (([here, there], None), ([here], "file:data")):
        with pytest.raises(UsageError):
            log_of(pipelines, log)


def test_parts_are_found_by_what_they_are(shop: Pipeline) -> None:
    assert view_names(shop) == ["seen"]
    orders, seen = part_of(shop, "orders"), part_of(shop, "seen")
    assert (timed_topic(orders) is not None) == (getattr(orders, "event_time", None) is not None)
    assert timed_topic(seen) is None


def test_a_node_that_there_is_not_is_refused(shop: Pipeline) -> None:
    with pytest.raises(PipelineError, match='no node "sene"'):
        node_of(shop, "sene", "sleeps")
