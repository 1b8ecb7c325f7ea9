"""When a query is given up."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater.engine.query import ATTEMPTS, Query
from headwater.errors import Fenced, HeadwaterError, PipelineError, SinkRefused, SinkUnavailable


@pytest.mark.parametrize(
    ("error", "failed", "broken"),
    [
        (None, 0, False),
        (PipelineError("wrong"), ATTEMPTS - 1, False),
        (PipelineError("wrong"), ATTEMPTS, True),
        (Fenced("another runner"), 1, True),
        (SinkUnavailable("down"), ATTEMPTS * 10, False),
        (SinkRefused("password"), ATTEMPTS, True),
    ],
)
def test_a_query_is_given_up_unless_waiting_may_help(
    tmp_path: Path, error: HeadwaterError | None, failed: int, broken: bool
) -> None:
    query = Query(tmp_path, None, lambda name: tmp_path)  # type: ignore[arg-type]
    query.error, query.failed = error, failed
    assert query.broken == broken
