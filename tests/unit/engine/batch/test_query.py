"""When a query is given up."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater.engine.batch.query import ATTEMPTS, Query
from headwater.engine.runner import _back_off
from headwater.errors import (
    ClockWrong,
    Fenced,
    HeadwaterError,
    LogRefused,
    LogUnavailable,
    NotALog,
    PipelineError,
    SinkRefused,
    SinkUnavailable,
)


@pytest.fixture
def query(tmp_path: Path) -> Query:
    return Query(tmp_path, None, lambda name: tmp_path)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("error", "failed", "broken"),
    [
        (None, 0, False),
        (PipelineError("wrong"), ATTEMPTS - 1, False),
        (PipelineError("wrong"), ATTEMPTS, True),
        (Fenced("another runner"), 1, True),
        (SinkUnavailable("down"), ATTEMPTS * 10, False),
        (SinkRefused("password"), ATTEMPTS, True),
        (LogUnavailable("the broker is down"), ATTEMPTS * 10, False),
        (LogRefused("password"), ATTEMPTS, True),
        (NotALog("something else"), ATTEMPTS, True),
        (ClockWrong("1970"), ATTEMPTS, True),
    ],
)
def test_a_query_is_given_up_unless_waiting_may_help(
    query: Query, error: HeadwaterError | None, failed: int, broken: bool
) -> None:
    for _ in range(failed):
        assert error is not None
        _back_off(query, error)
    assert query.broken == broken


def test_what_was_waited_for_does_not_count_when_something_else_fails(query: Query) -> None:
    for _ in range(ATTEMPTS * 10):
        _back_off(query, LogUnavailable("the broker is down"))
    for attempt in range(1, ATTEMPTS + 1):
        _back_off(query, PipelineError("wrong"))
        assert query.broken == (attempt == ATTEMPTS)
    query.done += 1
    _back_off(query, PipelineError("wrong"))
    assert not query.broken
