"""What a user gives to a declaration, read or refused with its title."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.errors import HeadwaterError, PipelineError
from headwater.pipeline.settings import (
    QuerySettings,
    SinkSettings,
    StreamSettings,
    TimingSettings,
    ViewSettings,
    key_columns,
    length_or_zero,
)

COLUMN = st.text("abcdé_", min_size=1, max_size=5)


@given(st.lists(COLUMN, min_size=1, unique=True))
def test_a_key_is_the_same_as_text_and_as_a_list(names: list[str]) -> None:
    assert key_columns("t", names) == key_columns("t", ", ".join(names)) == tuple(names)


@pytest.mark.parametrize("key", ["a,,b", ["a", ""], [1], 7, "a,a", ["a", "a"]])
def test_what_is_no_key_is_refused_with_the_title(key: Any) -> None:
    with pytest.raises(PipelineError, match='key of view "totals"'):
        key_columns('view "totals"', key)


@pytest.mark.parametrize("zero", ["0 seconds", "0 days", timedelta()])
def test_a_length_may_be_zero(zero: str | timedelta) -> None:
    assert length_or_zero(zero) == timedelta()
    assert length_or_zero("3 minutes") == timedelta(minutes=3)
    with pytest.raises(HeadwaterError):
        length_or_zero("soon")


def test_timing_that_is_not_given_is_told_from_none() -> None:
    assert TimingSettings().first_set is None
    assert TimingSettings(idle="1 second").first_set == "idle"
    read = TimingSettings(lateness="2 minutes", idle="1 second").read()
    assert (read.lateness, read.idle, read.max_ahead) == (timedelta(minutes=2), timedelta(seconds=1), None)


def test_a_query_takes_the_settings_of_what_it_becomes() -> None:
    stream = QuerySettings("id", event_time="at", partitions=3).of_kind("stream", "q")
    assert stream == StreamSettings("id", "at", 3)
    view = QuerySettings("id", store="postgresql://db/shop").of_kind("view", "q")
    assert view == ViewSettings("id", store="postgresql://db/shop")


@pytest.mark.parametrize(
    ("settings", "kind", "said"),
    [
        (QuerySettings(store="postgresql://db/shop"), "stream", 'stream "q" takes no store'),
        (QuerySettings(partitions=3), "view", 'view "q" takes no partitions'),
        (QuerySettings(event_time="at"), "view", 'view "q" takes no event_time'),
        (QuerySettings(), "veiw", 'kind is "view" or "stream", not "veiw"'),
    ],
)
def test_a_query_refuses_settings_which_it_has_not(settings: QuerySettings, kind: str, said: str) -> None:
    with pytest.raises(PipelineError, match=said):
        settings.of_kind(kind, "q")


@pytest.mark.parametrize(
    "settings",
    [
        StreamSettings(partitions=0),
        StreamSettings(partitions=True),
        StreamSettings(partitions=1025),
        StreamSettings(event_time=""),
        ViewSettings(order=""),
        ViewSettings(store="mysql://db/shop"),
    ],
)
def test_values_that_are_no_setting_are_refused(settings: StreamSettings | ViewSettings) -> None:
    with pytest.raises(HeadwaterError):
        settings.check("t")
    for right in (StreamSettings(partitions=1024), ViewSettings(order="at"), SinkSettings(None)):
        right.check("t")
