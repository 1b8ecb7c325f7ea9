"""Priorities and times of records, from columns and headers."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from headwater import record
from headwater.log.embedded.queue.timing import timings
from headwater.log.queue_settings import QueueSettings
from headwater.schema import TIMESTAMP

SECOND = 1_000_000
RECEIVED = 1_000 * SECOND


def batch(headers: list[dict[str, str] | None] | None = None, **columns: pa.Array) -> pa.RecordBatch:
    count = len(headers) if headers is not None else len(next(iter(columns.values())))
    found: list[Any] = [None if each is None else list(each.items()) for each in headers or [None] * count]
    own = {
        "_received": pa.array([RECEIVED] * count, pa.int64()).cast(TIMESTAMP),
        "_headers": pa.array(found, record.HEADERS),
    }
    return pa.RecordBatch.from_pydict({**columns, **own})


def test_a_column_of_numbers_is_the_priority_or_seconds_after_the_receipt() -> None:
    rows = batch(p=pa.array([3, None]), wait=pa.array([1.5, None]))
    settings = QueueSettings(priority="p", delay="wait", time_to_live="1 minute")
    one, two = timings(rows, settings)
    assert (one.priority, one.due, one.expires) == (3, RECEIVED + 1_500_000, RECEIVED + 60 * SECOND)
    assert (two.priority, two.due) == (0, None)


def test_a_column_of_times_is_the_time() -> None:
    rows = batch(at=pa.array([5 * SECOND, None], pa.int64()).cast(TIMESTAMP))
    assert [each.due for each in timings(rows, QueueSettings(delay="at"))] == [5 * SECOND, None]


@pytest.mark.parametrize(
    ("text", "due"),
    [("2 seconds", RECEIVED + 2 * SECOND), ("0 seconds", RECEIVED), ("1970-01-01T00:00:07Z", 7 * SECOND)],
)
def test_a_header_has_a_time_or_an_interval(text: str, due: int) -> None:
    [found] = timings(batch([{"after": text}]), QueueSettings(delay="header:after"))
    assert (found.due, found.problem) == (due, None)


def test_what_cannot_be_read_is_a_problem() -> None:
    settings = QueueSettings(priority="header:p", delay="header:after")
    one, two, three = timings(batch([{"p": "high"}, {"after": "soon"}, None]), settings)
    assert one.problem is not None and "no whole number" in one.problem
    assert two.problem is not None and "neither a time" in two.problem
    assert (three.problem, three.priority, three.due) == (None, 0, None)


def test_a_number_that_is_none_or_beyond_all_times_does_no_harm() -> None:
    rows = batch(wait=pa.array([float("nan"), 1e300]))
    one, two = timings(rows, QueueSettings(delay="wait"))
    assert one.due is None
    assert two.due is not None and two.due > RECEIVED
