"""Views of tables: what a view shows is what its function makes of the table's rows as they are now."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from headwater import Pipeline, joins, latest
from headwater.engine.plan.checking import check
from headwater.errors import PipelineError
from headwater.pipeline import targets
from headwater.testing.harness import Harness
from headwater.views import open_views

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def customers() -> Pipeline:
    pipeline = Pipeline("crm")
    pipeline.table("customers", "id BIGINT, name STRING, tier STRING", key="id")

    @pipeline.view(key="id")
    def everyone(customers: DataFrame) -> DataFrame:
        return customers

    @pipeline.view(key="id")
    def golden(customers: DataFrame) -> DataFrame:
        return customers.filter("tier = 'gold'").select("id", F.upper("name").alias("name"))

    return pipeline


def moves() -> Pipeline:
    pipeline = Pipeline("moves")
    pipeline.source("moves", "who STRING, city STRING, at TIMESTAMP", event_time="at")

    @pipeline.view(key="who")
    def parisians(moves: DataFrame) -> DataFrame:
        return moves.transform(latest(by="who")).filter("city = 'Paris'").select("who", "at")

    return pipeline


def shouted_after(operator: bool) -> Pipeline:
    pipeline = Pipeline("shouted")
    pipeline.table("people", "who STRING, city STRING, at TIMESTAMP", key="who", event_time="at")
    pipeline.source("moves", "who STRING, city STRING, at TIMESTAMP", event_time="at")

    if operator:

        @pipeline.view(key="who")
        def newest(moves: DataFrame) -> DataFrame:
            return moves.transform(latest(by="who")).withColumn("who", F.upper("who"))

    else:

        @pipeline.view(key="who")
        def loud(people: DataFrame) -> DataFrame:
            return people.withColumn("who", F.upper("who"))

    return pipeline


@pytest.mark.parametrize(("operator", "topic"), [(False, "people"), (True, "moves")])
def test_a_row_under_another_key_than_it_came_in_with_is_refused(
    spark: SparkSession, operator: bool, topic: str
) -> None:
    with Harness(shouted_after(operator), spark=spark) as harness:
        harness.send(topic, {"who": "ADA", "city": "Paris", "at": NOON})  # the same, in capitals
        harness.step()
        harness.send(topic, {"who": "bob", "city": "Paris", "at": NOON})
        with pytest.raises(PipelineError, match="another key than it came in with") as refused:
            harness.step()
        assert "who=BOB" in str(refused.value)


@pytest.mark.parametrize("limit", [3, 500_000])
def test_views_of_a_table_are_what_it_is_now(spark: SparkSession, limit: int) -> None:
    chance, rows = random.Random(5), dict[int, dict[str, Any]]()
    with Harness(customers(), spark=spark, limit=limit) as harness:
        for _ in range(3):
            for number in chance.sample(range(12), 6):
                if chance.random() < 0.3:
                    harness.delete("customers", number)
                    rows.pop(number, None)
                else:
                    row = {
                        "id": number,
                        "name": f"n{chance.randint(0, 9)}",
                        "tier": chance.choice(["gold", "tin"]),
                    }
                    harness.send("customers", [{**row, "tier": "gold"}, row])  # gold for a moment
                    rows[number] = row
            harness.step()
            assert harness.view("everyone") == [rows[number] for number in sorted(rows)]
            assert harness.view("golden") == [
                {"id": row["id"], "name": row["name"].upper()}
                for _, row in sorted(rows.items())
                if row["tier"] == "gold"
            ]
            harness.verify()


@pytest.mark.parametrize("few", [20_000, 0], ids=["in the driver", "in workers"])
def test_a_filter_behind_latest_takes_out_what_passes_no_longer(spark: SparkSession, few: int) -> None:
    with mock.patch("headwater.engine.batch.micro_batch.FEW", few), Harness(moves(), spark=spark) as harness:
        for second, (who, city) in enumerate(
            [("ada", "Paris"), ("bob", "Paris"), (None, "Rome"), ("ada", "Rome")]
        ):
            harness.send("moves", {"who": who, "city": city, "at": NOON + timedelta(seconds=second)})
            harness.step()
        assert [row["who"] for row in harness.view("parisians")] == ["bob"]
        harness.verify()


def test_a_view_of_a_table_has_its_key(spark: SparkSession) -> None:
    pipeline = customers()

    @pipeline.view(key="name")
    def by_name(customers: DataFrame) -> DataFrame:
        return customers

    with pytest.raises(PipelineError, match='view "by_name" has another key than table "customers"'):
        check(pipeline, spark)


@pytest.mark.parametrize("key", ["follower", ["follower", "id", "at"]], ids=["too short", "too long"])
def test_a_view_of_joined_tables_has_the_key_of_its_rows(spark: SparkSession, key: Any) -> None:
    pipeline = Pipeline("social")
    pipeline.table("posts", "id BIGINT, author STRING, at TIMESTAMP", key="id")
    pipeline.table("follows", "follower STRING, author STRING", key=["follower", "author"])

    @pipeline.view(key=key)
    def timelines(posts: DataFrame, follows: DataFrame) -> DataFrame:
        return posts.transform(joins.tables(follows, on="author"))

    with pytest.raises(PipelineError, match='view "timelines" has another key than the results of its'):
        check(pipeline, spark)


def test_a_deletion_is_never_taken_for_the_row_that_code_fails_on(spark: SparkSession) -> None:
    pipeline = Pipeline("crm")
    pipeline.table("customers", "id BIGINT, name STRING", key="id")

    @pipeline.view(key="id", on_error="dead_letter")
    def initials(customers: DataFrame) -> DataFrame:
        first = F.udf(lambda name: name[0], "STRING")
        return customers.select("id", first("name").alias("initial"))

    with Harness(pipeline, spark=spark) as harness:
        harness.send("customers", [{"id": 1, "name": "ada"}, {"id": 2, "name": "bob"}])
        harness.step()
        harness.delete("customers", 1)
        harness.send("customers", [{"id": 3, "name": ""}, {"id": 4, "name": "dan"}])
        harness.step()
        assert harness.view("initials") == [{"id": 2, "initial": "b"}, {"id": 4, "initial": "d"}]
        assert [row["record"] for row in harness.dead("initials")] == ['{"id":3,"name":""}']
        harness.verify()


def test_a_keyed_sink_of_a_table_has_what_the_table_is_now(spark: SparkSession, tmp_path: Path) -> None:
    pipeline = Pipeline("crm")
    pipeline.table("customers", "id BIGINT, name STRING, tier STRING", key="id")

    @pipeline.sink(targets.sqlite(tmp_path / "golden.db", "golden", "id"))
    def golden(customers: DataFrame) -> DataFrame:
        return customers.filter("tier = 'gold'").select("id", "name")

    with Harness(pipeline, spark=spark) as harness:
        gold = [
            {"id": number, "name": name, "tier": "gold"} for number, name in enumerate(("ada", "bob", "cyd"))
        ]
        harness.send("customers", gold)
        harness.step()
        harness.send("customers", {"id": 0, "name": "ada", "tier": "tin"})
        harness.delete("customers", 1)
        harness.step()
    with open_views(tmp_path / "golden.db") as views:
        assert views["golden"].scan().to_pylist() == [{"id": 2, "name": "cyd"}]
