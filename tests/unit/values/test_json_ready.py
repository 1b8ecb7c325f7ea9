"""What the public API returns can be told as JSON, whatever is in it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from pathlib import PurePosixPath
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.errors import HeadwaterError
from headwater.values.json_ready import JsonReady, calendar_time, json_ready


@dataclass(frozen=True)
class Wrapped(JsonReady):
    value: Any
    name: str = "w"


leaves = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.text('aé "', max_size=3)
    | st.datetimes(timezones=st.just(UTC))
    | st.timedeltas()
    | st.binary()
)
values = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.integers(), inner, max_size=3)
        | inner.map(Wrapped)
    ),
)


@given(values)
def test_whatever_is_in_it_json_takes_and_gives_back(value: Any) -> None:
    told = Wrapped(value).to_dict()
    assert json.loads(json.dumps(told)) == told


def test_times_are_told_in_utc_and_lengths_in_seconds() -> None:
    berlin = timezone(timedelta(hours=1))
    assert json_ready(datetime(2026, 1, 2, 3, 4, 5, tzinfo=berlin)) == "2026-01-02T02:04:05Z"
    assert json_ready(timedelta(milliseconds=1500)) == 1.5


def test_what_json_lacks_is_told_as_text_or_as_what_is_nearest() -> None:
    assert json_ready({1: (2, {3})}) == {"1": [2, [3]]}
    assert json_ready(PurePosixPath("a/b")) == "a/b"
    assert json_ready(HeadwaterError("no room", detail="it is full", hint="wait")) == "no room: it is full"
    assert json_ready(HeadwaterError("no room")) == "no room"


def test_a_class_may_say_itself_what_is_told_of_it() -> None:
    class Renamed(Wrapped):
        def facts(self) -> dict[str, Any]:
            return {"other": Wrapped(self.value)}

    assert Renamed(1).to_dict() == {"other": {"value": 1, "name": "w"}}


@pytest.mark.parametrize(
    ("micros", "time"),
    [
        (None, None),
        (0, datetime(1970, 1, 1, tzinfo=UTC)),
        (253_402_300_799_999_999, datetime.max.replace(tzinfo=UTC)),
        (253_402_300_800_000_000, None),
        (-62_135_596_800_000_001, None),
        (1 << 62, None),
    ],
)
def test_a_time_that_no_calendar_has_is_none(micros: int | None, time: datetime | None) -> None:
    assert calendar_time(micros) == time


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_what_is_no_number_in_json_is_text(value: float) -> None:
    assert json.loads(json.dumps(json_ready({"a": value}), allow_nan=False)) == {"a": str(value)}
