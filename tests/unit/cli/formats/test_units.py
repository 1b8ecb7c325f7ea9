"""Sizes, counts and lengths of time, as people write and read them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.cli.formats import units
from headwater.errors import UsageError


@given(st.integers(0, 10**15))
def test_a_size_that_is_shown_is_read_again_nearly(count: int) -> None:
    assert units.parse_size(units.size(count)) == pytest.approx(count, rel=0.06)


@pytest.mark.parametrize(("count", "text"), [(999, "999 B"), (999_949, "999.9 kB"), (999_950, "1.0 MB")])
def test_a_unit_changes_before_a_number_has_four_digits(count: int, text: str) -> None:
    assert units.size(count) == text


@pytest.mark.parametrize("text", ["", "GB", "-1", "1 XB", "1.5.2", "1e9"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="invalid size"):
        units.parse_size(text)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (59.5, "59.5 s"), (60, "1 min"), (3600, "1 h"), (86_461, "1 d 1 min"), (90_000, "1 d 1 h")],
)
def test_a_length_has_two_units_at_most(seconds: float, text: str) -> None:
    assert units.length(timedelta(seconds=seconds)) == text


def test_no_time_is_a_dash_or_nothing() -> None:
    assert (units.moment(None), units.short_moment(None)) == ("-", "")
    assert units.moment(datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)) == "2026-01-02 03:04:05Z"
