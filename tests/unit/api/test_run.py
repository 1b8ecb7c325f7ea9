"""A run that cannot begin: refused at once, or told by whoever waits for it."""

from __future__ import annotations

from pathlib import Path

import pytest

import headwater
from headwater import Pipeline
from headwater.api.run import BackgroundRun, RunOptions
from headwater.errors import HeadwaterError, PipelineError


def test_a_pipeline_that_does_not_fit_together_is_refused_before_spark_starts(broken: Pipeline) -> None:
    with pytest.raises(PipelineError, match="oders"):
        headwater.run(broken)
    assert not Path(broken.log.removeprefix("file:")).exists()


@pytest.fixture
def nowhere(tmp_path: Path) -> Pipeline:
    """A pipeline whose log cannot be opened: a file lies in its place."""
    (tmp_path / "data").write_text("not a log")
    made = Pipeline("shop", log=f"file:{tmp_path}/data")
    made.source("orders", "id BIGINT")
    made.sql("seen", "SELECT * FROM orders", key="id")
    return made


def test_what_fails_before_the_nodes_run_is_raised_to_who_waits(nowhere: Pipeline) -> None:
    with pytest.raises(HeadwaterError):
        headwater.run(nowhere, until_caught_up=True)


def test_a_run_in_the_background_that_failed_has_no_statuses_and_can_be_stopped(nowhere: Pipeline) -> None:
    with BackgroundRun(nowhere, RunOptions()) as work:
        with pytest.raises(HeadwaterError):
            work.result()
        assert work.ended()
        assert work.statuses() == []
        assert work.step == "opening the log"
