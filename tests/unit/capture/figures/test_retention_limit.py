"""A capture that is far behind is given up before the database's disk is full, if that is asked."""

from __future__ import annotations

from typing import cast

import pytest

from headwater.capture.figures.gauges import Gauges
from headwater.capture.figures.retention_limit import RetentionLimit
from headwater.capture.settings import CaptureSettings
from headwater.capture.source import CaptureSource
from headwater.errors import SourceRefused


class Keeping:
    """A source that keeps so many bytes, or does not say how many."""

    title = "a database"

    def __init__(self, retained: int | None):
        self._retained, self.dropped = retained, False

    def retained(self) -> int:
        if self._retained is None:
            raise SourceRefused("not for you")
        return self._retained

    def drop(self) -> None:
        self.dropped = True


def check(retained: int | None, settings: CaptureSettings) -> tuple[Keeping, Gauges]:
    source, gauges = Keeping(retained), Gauges()
    RetentionLimit(cast(CaptureSource, source), settings, gauges).check()
    return source, gauges


def test_as_much_as_is_allowed_is_kept() -> None:
    source, gauges = check(100, CaptureSettings(max_retained=100))
    assert (source.dropped, gauges.retained) == (False, 100)
    assert gauges.alert is not None  # more than half


def test_more_than_is_allowed_is_given_up() -> None:
    source = Keeping(101)
    limit = RetentionLimit(cast(CaptureSource, source), CaptureSettings(max_retained=100), Gauges())
    with pytest.raises(SourceRefused, match="which was given up"):
        limit.check()
    assert source.dropped


def test_without_a_limit_nothing_is_given_up_and_nobody_warned() -> None:
    source, gauges = check(10**15, CaptureSettings())
    assert (source.dropped, gauges.retained, gauges.alert) == (False, 10**15, None)


def test_who_may_not_ask_does_without_unless_a_limit_is_set() -> None:
    assert check(None, CaptureSettings())[1].retained is None
    with pytest.raises(SourceRefused, match="not for you"):
        check(None, CaptureSettings(alert_retained=5))
