"""``examples/flights`` through Spark: real flights with their real delays, in several steps and over a
restart, give what DuckDB says of all of them at once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession

import flights_kit
from flights_kit import LATENESS, Part
from headwater.testing.harness import Harness

expected = flights_kit.module("expected")
BEFORE = datetime(2013, 1, 1, tzinfo=UTC)


def late_by_the_clock(parts: list[Part]) -> set[int]:
    """The flights that should have left before the clock that those of earlier parts had set."""
    clock, late = BEFORE, set[int]()
    for part in parts:
        before = pc.less(part.flights["scheduled"], pa.scalar(clock, pa.timestamp("us", "UTC")))
        late.update(part.flights.filter(before)["id"].to_pylist())
        newest = pc.max(part.flights["scheduled"]).as_py() or BEFORE
        clock = max(clock, newest - LATENESS)
    return late


def send(harness: Harness, part: Part) -> None:
    for name, rows in (("weather", part.weather), ("flights", part.flights)):
        if len(rows):
            harness.send(name, rows.to_pylist())


@pytest.mark.parametrize(
    ("days", "hours"), [(4, 16), pytest.param(None, 24, marks=[pytest.mark.long, pytest.mark.timeout(3600)])]
)
def test_flights_that_come_when_they_are_over_give_what_duckdb_says(
    spark: SparkSession, days: int | None, hours: int
) -> None:
    tables, parts = flights_kit.whole(days), flights_kit.parts(days, hours)
    with Harness(flights_kit.pipeline(), spark=spark) as harness:
        harness.send("planes", tables["planes"].to_pylist())
        harness.step()
        for number, part in enumerate(parts):
            if number == len(parts) // 2:
                harness.restart()
            send(harness, part)
            harness.step()
        harness.advance(pc.max(tables["flights"]["ended"]).as_py() + timedelta(days=3))
        harness.step()
        harness.verify()
        late = expected.set_aside(harness.log)
        for view, wanted in expected.expected(tables, late).items():
            found = pa.Table.from_pylist(harness.view(view))
            assert expected.compared(view, found, wanted) == {}, view
        told = [row["id"] for row in harness.stream("equipped")]
        revisions = [row["revision"] for row in harness.view("departures")]
        set_aside = {name: harness.late(name) for name in ("departures", "shifts", "equipped", "seats")}
    assert sorted(late) == sorted(late_by_the_clock(parts)), "each of them once"
    assert late
    assert sorted(told) == sorted(tables["flights"]["id"].to_pylist())
    assert any(revisions), "some flights came after their hour was published"
    assert set_aside == dict[str, list[Any]](departures=[], shifts=[], equipped=[], seats=[])
