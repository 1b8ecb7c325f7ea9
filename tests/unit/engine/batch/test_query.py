"""A query that is not running: where it begins, and what is known of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater.engine.batch.query import Query
from headwater.engine.home import checkpoint
from headwater.errors import PipelineError
from headwater.log import Position


@pytest.fixture
def query(tmp_path: Path) -> Query:
    return Query(tmp_path / "query", None, lambda name: tmp_path, lambda *folders: None)  # type: ignore[arg-type]


def test_where_its_inputs_begin_is_written_down_once(query: Query) -> None:
    query.begin({"orders": Position("orders", {0: 3})})
    query.begin({"orders": Position("orders", {0: 5})})
    assert checkpoint.read_start(query.checkpoint) == {"orders": Position("orders", {0: 3})}


def test_a_query_that_is_not_running_is_not_waited_for(query: Query) -> None:
    assert query.has_passed({"orders": Position("orders", {0: 3})})


def test_a_query_that_fails_says_why_until_it_has_done_a_micro_batch(query: Query) -> None:
    error = PipelineError("wrong")
    query.back_off(error)
    assert (query.error, query.broken, query.has_progressed) == (error, False, False)
    query.done += 1
    assert query.has_progressed
