"""The rows of a micro-batch are accounted for: one that is lost on the way is noticed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from headwater.engine.files.local_files import LocalFiles
from headwater.engine.stage import bucket_step, runtime
from headwater.engine.stage.bucket_step import StepContext
from headwater.engine.stage.runtime import Results
from headwater.engine.state.state_manifests import StateManifests
from headwater.errors import HeadwaterError
from headwater.operators.latest import Latest

ROWS = pa.table(
    {"who": ["ada", "bob", "ada"], "at": pa.array([1, 2, None], pa.timestamp("us", "UTC"))},
)


@pytest.fixture
def results(tmp_path: Path) -> Results:
    states = StateManifests(LocalFiles(tmp_path))
    states.begin()
    work = StepContext("node", Latest(("who",), "at"), ROWS.schema, states.files, count=8)
    return runtime.combine(bucket_step.step_in_driver(work, ROWS), ROWS.schema, ROWS.schema)


def test_rows_that_are_all_there_add_up(results: Results) -> None:
    results.check(3)
    assert (results.main.num_rows, results.late.num_rows) == (2, 1)


def test_a_row_that_was_lost_on_the_way_is_noticed(results: Results) -> None:
    with pytest.raises(HeadwaterError, match="do not add up") as caught:
        results.check(4)
    assert caught.value.detail == "rows in: 4 here, 3 counted by buckets"
    with pytest.raises(HeadwaterError) as caught:
        replace(results, main=results.main.slice(1), late=results.late.slice(1)).check(3)
    assert (
        caught.value.detail
        == "rows out: 1 here, 2 counted by buckets; late rows: 0 here, 1 counted by buckets"
    )
