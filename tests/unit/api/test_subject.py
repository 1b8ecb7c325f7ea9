"""Which pipeline is meant: one at hand, or that of a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater import Pipeline
from headwater.api.subject import checked, node_of, pipeline_of
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


def test_a_node_that_there_is_not_is_refused(shop: Pipeline) -> None:
    with pytest.raises(PipelineError, match='no node "sene"'):
        node_of(shop, "sene", "sleeps")
