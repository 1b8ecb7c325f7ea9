"""When a query is retried, and when it is given up."""

from __future__ import annotations

from itertools import pairwise

import pytest

from headwater.engine.batch import retry as retries
from headwater.engine.batch.retry import MAX_ATTEMPTS, MAX_BACKOFF_SECONDS, Retry
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
def retry() -> Retry:
    return Retry()


@pytest.mark.parametrize(
    ("error", "failed", "broken"),
    [
        (None, 0, False),
        (PipelineError("wrong"), MAX_ATTEMPTS - 1, False),
        (PipelineError("wrong"), MAX_ATTEMPTS, True),
        (Fenced("another runner"), 1, True),
        (SinkUnavailable("down"), MAX_ATTEMPTS * 10, False),
        (SinkRefused("password"), MAX_ATTEMPTS, True),
        (LogUnavailable("the broker is down"), MAX_ATTEMPTS * 10, False),
        (LogRefused("password"), MAX_ATTEMPTS, True),
        (NotALog("something else"), MAX_ATTEMPTS, True),
        (ClockWrong("1970"), MAX_ATTEMPTS, True),
    ],
)
def test_a_query_is_given_up_unless_waiting_may_help(
    retry: Retry, error: HeadwaterError | None, failed: int, broken: bool
) -> None:
    for _ in range(failed):
        assert error is not None
        retry.back_off(error, done=0)
    assert retry.is_given_up == broken


def test_what_was_waited_for_does_not_count_when_something_else_fails(retry: Retry) -> None:
    for _ in range(MAX_ATTEMPTS * 10):
        retry.back_off(LogUnavailable("the broker is down"), done=0)
    for attempt in range(1, MAX_ATTEMPTS + 1):
        retry.back_off(PipelineError("wrong"), done=0)
        assert retry.is_given_up == (attempt == MAX_ATTEMPTS)
    retry.back_off(PipelineError("wrong"), done=1)
    assert not retry.is_given_up


def test_the_backoff_doubles_up_to_a_limit_and_begins_anew_after_a_micro_batch(
    retry: Retry, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    monkeypatch.setattr("headwater.engine.batch.retry.time.monotonic", lambda: now)
    waits = []
    for _ in range(10):
        retry.back_off(SinkUnavailable("down"), done=0)
        begun = now
        while not retry.is_due:
            now += 0.5
        waits.append(now - begun)
    assert waits[0] == retries.BACKOFF_SECONDS
    assert all(later == min(2 * earlier, MAX_BACKOFF_SECONDS) for earlier, later in pairwise(waits))
    retry.back_off(SinkUnavailable("down"), done=1)
    now += retries.BACKOFF_SECONDS
    assert retry.is_due


def test_a_query_that_goes_on_has_no_error_and_may_start_at_once(retry: Retry) -> None:
    retry.back_off(Fenced("another runner"), done=3)
    assert not retry.has_progressed(3)
    assert retry.has_progressed(4)
    retry.clear()
    assert (retry.error, retry.is_due, retry.is_given_up) == (None, True, False)
