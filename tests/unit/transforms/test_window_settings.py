"""The settings that windows share: what they are read as, and what contradicts."""

from __future__ import annotations

from datetime import timedelta

import pytest

from headwater.errors import UsageError
from headwater.operators.aggregates.agg import count
from headwater.transforms.window_settings import comparison, early_interval, length_or_zero

MINUTE = timedelta(minutes=1)


def test_how_often_is_a_length_of_time_or_a_number_of_rows() -> None:
    assert early_interval("tumbling", "early", "1 minute") == MINUTE
    assert early_interval("tumbling", "early", 100) == 100
    assert early_interval("tumbling", "final", None) is None
    assert length_or_zero(None) == timedelta()


def test_windows_are_compared_with_those_that_began_a_multiple_of_the_hop_before() -> None:
    assert comparison("hopping", "5 minutes", MINUTE, "final") == 5 * MINUTE
    assert comparison("hopping", None, MINUTE, "early") is None
    with pytest.raises(UsageError, match='no windows that began "90 seconds" apart'):
        comparison("hopping", "90 seconds", MINUTE, "final")
    with pytest.raises(UsageError, match='cannot compare windows with emit="early"'):
        comparison("hopping", "5 minutes", MINUTE, "early")


def test_an_aggregate_may_not_have_the_name_of_a_setting() -> None:
    with pytest.raises(UsageError, match='cannot call an aggregate "compare"'):
        comparison("tumbling", count(), MINUTE, "final")  # type: ignore[arg-type]
