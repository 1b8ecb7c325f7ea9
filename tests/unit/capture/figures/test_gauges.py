"""What a capture measures of itself."""

from __future__ import annotations

import logging

import pytest

from headwater.capture.figures.gauges import Gauges
from headwater.durations import now


def test_there_is_a_warning_once_whenever_a_database_keeps_too_much(caplog: pytest.LogCaptureFixture) -> None:
    gauges = Gauges()
    with caplog.at_level(logging.WARNING, "headwater"):
        for retained in (10, 101, 150, 90, 102, None):
            gauges.keep("the database", retained, 100)
    assert [each.getMessage().split(":")[0] for each in caplog.records] == [
        "the database keeps 101 bytes for this capture, more than 100",
        "the database keeps 102 bytes for this capture, more than 100",
    ]
    assert (gauges.alert, gauges.retained) == (None, None)


def test_without_a_limit_there_is_none() -> None:
    gauges = Gauges()
    gauges.keep("the database", 1 << 60, None)
    assert (gauges.alert, gauges.retained) == (None, 1 << 60)


def test_the_delay_is_from_the_commit_until_now() -> None:
    gauges = Gauges()
    gauges.wrote(now() - 2_000_000)
    assert gauges.delay is not None and 2.0 <= gauges.delay < 60.0
    gauges.wrote(now() + 9_000_000)  # a clock that is ahead
    assert gauges.delay == 0.0
