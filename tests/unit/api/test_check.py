"""What a check tells, and what it refuses before Spark starts."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import headwater
from headwater import Pipeline
from headwater.api.check import NodeColumns
from headwater.errors import PipelineError


def test_the_columns_of_a_node_are_told_as_spark_writes_them() -> None:
    found = NodeColumns("seen", "view", ("id",), pa.schema([("id", pa.int64()), ("item", pa.string())]))
    assert found.columns == "id BIGINT, item STRING"
    told = {"node": "seen", "kind": "view", "key": ["id"], "columns": "id BIGINT, item STRING"}
    assert found.to_dict() == told


def test_a_pipeline_that_does_not_fit_together_is_refused_and_no_log_is_made(broken: Pipeline) -> None:
    with pytest.raises(PipelineError, match="oders"):
        headwater.check(broken)
    assert not Path(broken.log.removeprefix("file:")).exists()
