"""Windows and joins through Spark, in the driver and in workers, over restarts, and the proof of each."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest import mock

import pytest
from pyspark.sql import DataFrame, SparkSession

from headwater import Pipeline, agg, joins, tables, windows
from headwater.errors import UsageError
from headwater.testing.harness import Harness

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
Row = dict[str, Any]
in_both = pytest.mark.parametrize("few", [20_000, 0], ids=["in the driver", "in workers"])


def at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def events(chance: random.Random, count: int) -> list[Row]:
    """What some users do, up to two minutes out of order."""
    rows = [{"id": n, "who": chance.choice("abc"), "n": n % 10, "at": at(n * 2)} for n in range(count)]
    return sorted(rows, key=lambda row: row["id"] + chance.randint(0, 60))


def windowed(late: str, **more: Any) -> Pipeline:
    pipeline = Pipeline("windows")
    schema = "id BIGINT, who STRING, n BIGINT, at TIMESTAMP"
    pipeline.source("clicks", schema, event_time="at", lateness="10 seconds")
    more = {**more, "late": late}
    minutes = windows.tumbling("1 minute", by="who", n=agg.sum("n"), rows=agg.count(), **more)
    viewed(pipeline, "minutes", "who, window_start", minutes)
    measured = {"rows": agg.count(), "speed": agg.rate(per="1 minute")}
    compared = windows.tumbling("1 minute", by="who", compare="2 minutes", **measured, **more)
    viewed(pipeline, "compared", "who, window_start", compared)
    hops = windows.hopping("1 minute", "20 seconds", n=agg.sum("n"), **more)
    viewed(pipeline, "hops", "window_start", hops)
    moving = windows.sliding("30 seconds", by="who", rows=agg.count(), **more)
    viewed(pipeline, "moving", "who, window_start", moving)
    visits = windows.session("15 seconds", by="who", first=agg.first("id"), **more)
    viewed(pipeline, "visits", "who, window_start", visits)
    shown = {"first": agg.first("id"), "rows": agg.count(), "emit": "early", "every": "20 seconds"}
    going = windows.session("15 seconds", by="who", **shown, **more)
    viewed(pipeline, "going", "who, window_start", going)
    return pipeline


def viewed(pipeline: Pipeline, name: str, key: str, door: Any) -> None:
    def node(clicks: DataFrame) -> DataFrame:
        return clicks.transform(door)

    node.__name__ = name
    pipeline.view(key=key)(node)


@in_both
@pytest.mark.parametrize("late", ["side", "correct"])
def test_windows_are_what_a_batch_gives(spark: SparkSession, few: int, late: str) -> None:
    more = {"keep": "1 hour"} if late == "correct" else {}
    rows = events(random.Random(3), 120)
    with (
        mock.patch("headwater.engine.batch.micro_batch.FEW", few),
        Harness(windowed(late, **more), spark=spark) as harness,
    ):
        for start in (0, 40, 80):
            harness.send("clicks", rows[start : start + 40])
            harness.step()
            assert any(not row["complete"] for row in harness.view("going"))
        harness.restart()
        harness.advance(at(86_400))
        harness.step()
        harness.verify()
        assert all(row["complete"] for row in harness.view("going"))
        late_ids = {row["id"] for row in harness.late("minutes")}
        assert bool(late_ids) == (late != "correct")
        kept = [row for row in rows if row["id"] not in late_ids]
        assert sum(row["rows"] for row in harness.view("minutes")) == len(kept)
        assert sum(row["n"] for row in harness.view("minutes")) == sum(row["n"] for row in kept)
        counted = {(row["who"], row["window_start"]): row["rows"] for row in harness.view("minutes")}
        for row in harness.view("compared"):
            before = counted.get((row["who"], row["window_start"] - timedelta(minutes=2)))
            change = None if before is None else row["rows"] - before
            assert (row["rows_before"], row["rows_change"]) == (before, change)
            assert row["speed"] == row["rows"] == counted[row["who"], row["window_start"]]
        if late != "correct":
            told = harness.late("minutes")[0]
            assert told["late_window_start"] <= told["at"]
            assert told["late_by"] > 0


@in_both
def test_a_deleted_version_is_none(spark: SparkSession, few: int) -> None:
    pipeline = Pipeline("versions")
    pipeline.source("sales", "id BIGINT, land STRING, at TIMESTAMP", event_time="at")
    pipeline.table("rates", "land STRING, rate BIGINT, since TIMESTAMP", key="land", event_time="since")

    @pipeline.view(key="id")
    def taxed(sales: DataFrame, rates: DataFrame) -> DataFrame:
        return sales.transform(joins.as_of(rates, on="land"))

    with mock.patch("headwater.engine.batch.micro_batch.FEW", few), Harness(pipeline, spark=spark) as harness:
        harness.send("rates", {"land": "de", "rate": 19, "since": at(0)})
        harness.delete("rates", "de", at=at(10))
        harness.send("rates", {"land": "de", "rate": 7, "since": at(20)})
        harness.send("sales", [{"id": n, "land": "de", "at": at(n)} for n in (5, 15, 25)])
        harness.advance(at(100))
        harness.step()
        assert [row["rate"] for row in harness.view("taxed")] == [19, None, 7]
        harness.verify()


@in_both
def test_tables_are_joined_and_grouped_as_they_are_now(spark: SparkSession, few: int) -> None:
    pipeline = Pipeline("people")
    pipeline.table("people", "id BIGINT, name STRING, team BIGINT", key="id")
    pipeline.table("teams", "id BIGINT, title STRING", key="id")

    @pipeline.view(key="id")
    def placed(people: DataFrame, teams: DataFrame) -> DataFrame:
        return people.transform(joins.tables(teams, on={"team": "id"}, how="left"))

    @pipeline.view(key="team")
    def sizes(people: DataFrame) -> DataFrame:
        grouped = people.transform(tables.group("team", people=agg.count(), last=agg.max("name")))
        return grouped.filter("team IS NOT NULL")

    people, teams, chance = dict[int, Row](), dict[int, Row](), random.Random(8)
    with mock.patch("headwater.engine.batch.micro_batch.FEW", few), Harness(pipeline, spark=spark) as harness:
        for _ in range(3):
            for number in chance.sample(range(8), 5):
                known, name = (people, "people") if chance.random() < 0.7 else (teams, "teams")
                if chance.random() < 0.3:
                    known.pop(number, None)
                    harness.delete(name, number)
                    continue
                row = {"id": number, "name": f"p{number}", "team": chance.choice([0, 1, 2, None])}
                known[number] = row if known is people else {"id": number % 4, "title": f"t{number}"}
                if known is teams:
                    teams[number % 4] = teams.pop(number)
                    harness.send("teams", teams[number % 4])
                else:
                    harness.send("people", row)
            harness.step()
            assert {row["id"]: row["title"] for row in harness.view("placed")} == {
                number: teams.get(row["team"], {}).get("title") for number, row in people.items()
            }
            found = {row["team"]: (row["people"], row["last"]) for row in harness.view("sizes")}
            groups = {
                row["team"]: [p["name"] for p in people.values() if p["team"] == row["team"]]
                for row in people.values()
                if row["team"] is not None
            }
            assert found == {team: (len(names), max(names)) for team, names in groups.items()}
        harness.verify()


def test_two_columns_of_one_name_are_refused_with_the_users_line(spark: SparkSession) -> None:
    pipeline = Pipeline("twice")
    for name in ("searches", "clicks"):
        pipeline.source(name, "who STRING, at TIMESTAMP", event_time="at")

    @pipeline.stream()
    def both(searches: DataFrame, clicks: DataFrame) -> DataFrame:
        return searches.transform(joins.within(clicks, on="who", after="1 hour"))

    with pytest.raises(Exception, match='within has two columns "at"') as raised:
        Harness(pipeline, spark=spark)
    assert isinstance(raised.value, UsageError) or "test_windows_and_joins.py" in str(raised.value)
