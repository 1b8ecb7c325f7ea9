"""Results of the public API as JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import headwater
from headwater.errors import HeadwaterError
from headwater.values.json_ready import JsonReady, calendar_time


def test_results_are_told_as_json() -> None:
    @dataclass(frozen=True)
    class Told(JsonReady):
        at: datetime
        lasted: timedelta
        error: HeadwaterError
        places: tuple[headwater.Position, ...]
        inner: headwater.ClockSkew

    told = Told(
        datetime(2026, 1, 2, tzinfo=UTC),
        timedelta(seconds=1.5),
        HeadwaterError("no", detail="because"),
        (headwater.Position("orders", {0: 7}),),
        headwater.ClockSkew("orders", 0, "till", 2_500_000),
    )
    assert json.loads(json.dumps(told.to_dict())) == {
        "at": "2026-01-02T00:00:00Z",
        "lasted": 1.5,
        "error": "no: because",
        "places": ["orders:0=7"],
        "inner": {"topic": "orders", "partition": 0, "producer": "till", "by": 2.5},
    }


def test_a_time_that_no_calendar_has_is_none() -> None:
    assert calendar_time(1 << 62) is None
