"""``examples/flights`` without Spark: the feed tells what has happened, and the windows and the join of
the pipeline, played through in steps of some hours, give what DuckDB says of all flights at once."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import flights_kit
import headwater
from headwater import Log
from headwater.durations import MICROSECOND
from headwater.engine.batch.inputs import declare
from headwater.engine.figures.lateness import profile
from headwater.operators.event_time import FOREVER, NEVER
from headwater.operators.operator import Operator, Step
from headwater.operators.spec import OperatorSpec, Side
from headwater.sinks import Batch
from headwater.views import ViewStore

feed, expected = flights_kit.module("feed"), flights_kit.module("expected")
some_or_all = pytest.mark.parametrize(
    ("days", "hours"), [(7, 6), pytest.param(None, 6, marks=[pytest.mark.long, pytest.mark.timeout(1800)])]
)


@pytest.fixture(scope="module")
def year() -> pd.DataFrame:
    return feed.flights()  # type: ignore[no-any-return]


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    """A new log with the topics of the example."""
    pipeline = flights_kit.pipeline()
    with headwater.open(f"file:{tmp_path}/data") as opened:
        for each in (*pipeline.sources, *pipeline.tables):
            declare(opened, each)
        yield opened


def write(log: Log, *options: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(flights_kit.PLACE / "feed.py"), "--log", log.url, *map(str, options)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def test_every_flight_is_told_of_once_in_the_order_in_which_they_were_over(year: pd.DataFrame) -> None:
    assert len(year) == year["id"].nunique() == 336_776
    assert year["ended"].is_monotonic_increasing


def test_the_schedule_is_in_utc_as_the_package_has_it_to_the_hour(year: pd.DataFrame) -> None:
    told = year.set_index("id")["scheduled"].dt.floor("h")
    assert (told.sort_index().array == pd.to_datetime(feed.read("flights.csv.zip")["time_hour"]).array).all()


def test_a_flight_takes_some_minutes_more_than_it_is_in_the_air(year: pd.DataFrame) -> None:
    """Where its end is the arrival: by clocks of two time zones, and a third column that knows neither."""
    raw = feed.read("flights.csv.zip")
    told = year.set_index("id").sort_index().reset_index()
    left = told["scheduled"] + pd.to_timedelta(told["dep_delay"].astype("float"), unit="min")
    ground = (told["ended"] - left).dt.total_seconds() / 60 - raw["air_time"]
    assert ground.notna().sum() == 327_346
    assert ground.dropna().between(5, 4 * 60).all()
    cancelled = told["dep_delay"].isna()
    assert (told["ended"] == told["scheduled"])[cancelled].all()
    assert cancelled.sum() == 8255


def test_fewer_days_are_the_first_of_more(year: pd.DataFrame) -> None:
    some = feed.flights(3)
    pd.testing.assert_frame_equal(
        some, year[year["id"].isin(some["id"])].reset_index(drop=True), check_dtype=True
    )
    assert (
        some["scheduled"].max() < pd.Timestamp(2013, 1, 4, tz="America/New_York") <= year["scheduled"].max()
    )


def test_each_hour_is_told_when_it_is_over() -> None:
    told = flights_kit.heard(3)
    for hour in told[:-1]:
        for times in (hour.weather["since"], hour.flights["ended"]):
            assert times.between(hour.until - pd.Timedelta(hours=1), hour.until, inclusive="left").all()
    assert sum(len(hour.flights) for hour in told) == len(feed.flights(3))
    assert sum(len(hour.weather) for hour in told) == len(feed.weather(3))


@pytest.mark.slow
def test_the_feed_writes_into_a_new_log_and_says_how_many(log: Log) -> None:
    told = write(log, "--days", 1)
    assert (told.returncode, told.stderr) == (0, "")
    assert told.stdout.split()[-1] == "842"
    assert log.describe("flights").records == 842
    for name, wanted in flights_kit.whole(1).items():
        assert expected.whole(log, name).select(wanted.column_names).to_pylist() == wanted.to_pylist()
    told = write(log, "--days", 1)
    assert told.returncode == 1
    assert told.stderr.startswith("error: the log has flights already")


def test_without_the_topics_it_says_so_in_a_line(tmp_path: Path) -> None:
    with headwater.open(f"file:{tmp_path}/data") as log:
        told = write(log, "--days", 1)
    assert told.returncode == 1
    assert told.stderr.startswith('error: no topic "flights"'), told.stderr


@pytest.mark.slow
def test_views_that_are_not_what_duckdb_says_are_shown(log: Log, tmp_path: Path) -> None:
    assert write(log, "--days", 1).returncode == 0
    home = tmp_path / "data" / "pipelines" / "air"
    home.mkdir(parents=True)
    store, right = ViewStore(home / "views.db"), expected.expected(flights_kit.whole(1))
    for name, rows in right.items():
        sink = store.sink(name, rows.schema, key=expected.KEYS[name])
        sink.begin()
        sink.commit(Batch(0, rows))
    command = [sys.executable, str(flights_kit.PLACE / "expected.py"), "--dir", str(tmp_path / "data")]
    told = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (told.returncode, told.stderr) == (0, "")
    assert "departures: 54 rows, 0 differ" in told.stdout
    sink = store.sink("conditions", right["conditions"].schema, key=expected.KEYS["conditions"])
    sink.begin()
    [row] = right["conditions"].filter(pc.field("id") == 1).to_pylist()
    sink.commit(Batch(1, pa.Table.from_pylist([{**row, "temp": 451.0}], right["conditions"].schema)))
    told = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert told.returncode == 1
    assert "conditions: 842 rows, 1 differ" in told.stdout


class Captured:
    """Stands for a DataFrame of the node: what it is transformed with comes out."""

    def select(self, *columns: str) -> Captured:
        return self

    def filter(self, condition: str) -> Captured:
        return self

    def transform(self, door: OperatorSpec) -> OperatorSpec:
        return door


def door(view: str) -> OperatorSpec:
    node = flights_kit.pipeline()[view]
    return node.code.function(*[Captured()] * len(node.upstreams))  # type: ignore[no-any-return,attr-defined]


class Played:
    """An operator that is given rows and clocks as the engine does it."""

    def __init__(self, operator: Operator[Any], schema: pa.Schema):
        self._operator, self._schema, self._state = operator, schema, operator.initial_state(schema)
        self._newest = self._clock = NEVER
        self.steps: list[Step] = []

    def take(self, rows: pa.Table, flights: pa.Table) -> None:
        """Judge rows by the clock before them, and then let time go on by the flights among them."""
        self.steps.append(self._operator.step(self._state, rows, self._clock))
        if len(flights):
            newest = pc.max(flights["scheduled"].cast(pa.int64())).as_py()
            self._newest = max(self._newest, newest)
            self.wake(self._newest - flights_kit.LATENESS // MICROSECOND)

    def wake(self, clock: int) -> None:
        self._clock = clock
        self.steps.append(self._operator.step(self._state, self._schema.empty_table(), clock))

    @property
    def out(self) -> pa.Table:
        return pa.concat_tables([step.out for step in self.steps])

    @property
    def late(self) -> list[dict[str, Any]]:
        return [row for step in self.steps if step.late is not None for row in step.late.to_pylist()]


def as_a_view(view: str, rows: pa.Table) -> pa.Table:
    """What a view shows after all these rows."""
    shown: dict[Any, dict[str, Any]] = {}
    for row in rows.to_pylist():
        key = tuple(row[name] for name in expected.KEYS[view])
        shown.pop(key, None) if row.get("_deleted") else shown.__setitem__(key, row)
    return pa.Table.from_pylist(list(shown.values()), rows.schema)


@some_or_all
@pytest.mark.parametrize("view", ["departures", "shifts"])
def test_windows_that_are_put_right_give_what_duckdb_says(view: str, days: int | None, hours: int) -> None:
    tables = flights_kit.whole(days)
    schema = tables["flights"].schema
    played = Played(door(view).build(Side(schema, "scheduled")), schema)
    for part in flights_kit.parts(days, hours):
        flown = part.flights.filter(pc.is_valid(part.flights["dep_delay"]))
        played.take(flown if view == "shifts" else part.flights, part.flights)
    played.wake(FOREVER)
    if view == "departures" or days is None:
        assert pc.max(played.out["revision"]).as_py() > 0, "some flights came after their window had ended"
    assert not played.late, "but none after more than two days"
    wanted = expected.expected(tables)[view]
    assert expected.compared(view, as_a_view(view, played.out), wanted) == {}


@some_or_all
def test_each_flight_has_the_weather_that_duckdb_says(days: int | None, hours: int) -> None:
    tables, through = flights_kit.whole(days), door("conditions")
    left = tables["flights"].select(["id", "origin", "dep_delay", "scheduled"]).schema
    right = tables["weather"].schema
    assert through.pairing is not None
    schema = through.pairing.schema("as_of", left, right)
    operator = through.build(Side(left, "scheduled"), Side(right, "since", ("origin",)))
    played = Played(operator, schema)
    for part in flights_kit.parts(days, hours):
        rows = through.pairing.sent(part.flights.select(left.names), part.weather, schema)
        played.take(rows, part.flights)
    played.wake(FOREVER)
    late = [row["_left"]["id"] for row in played.late]
    assert 0 < len(late) < len(tables["flights"]) / 40
    wanted = expected.expected(tables, late)["conditions"]
    assert expected.compared("conditions", played.out, wanted) == {}
    assert len(played.out) + len(late) == len(tables["flights"])


@pytest.mark.long
def test_as_many_flights_are_late_as_the_page_says(log: Log) -> None:
    told = (flights_kit.PLACE / "README.md").read_text()
    with log.producer("flights", id="feed") as producer:
        for hour in flights_kit.heard(None):
            if len(hour.flights):
                producer.send_batch(hour.flights)
                producer.flush()
    found = profile(log, "flights", judged=[flights_kit.LATENESS])
    assert f"topic flights: {found.rows:,} rows" in told
    for name, length in (("1 hour", 1), ("6 hours (declared)", 6), ("1 day", 24)):
        late = found.late(timedelta(hours=length))
        assert re.search(rf"^{re.escape(name)} +{late:,} ", told, re.MULTILINE)


@pytest.mark.long
def test_nearly_all_flights_to_hawaii_are_late_and_a_third_of_the_late_ones_left_late(
    year: pd.DataFrame,
) -> None:
    newest, late = pd.Timestamp("2012-01-01", tz="UTC"), []
    for hour in flights_kit.heard(None):
        behind = newest - hour.flights["scheduled"]
        late.append(hour.flights[behind > flights_kit.LATENESS])
        newest = max(newest, hour.flights["scheduled"].max()) if len(hour.flights) else newest
    found = pd.concat(late)
    assert len(found) == 3_706
    assert ((found["dest"] == "HNL").sum(), (year["dest"] == "HNL").sum()) == (705, 707)
    assert 0.3 < (found["dep_delay"] >= 120).mean() < 0.37
