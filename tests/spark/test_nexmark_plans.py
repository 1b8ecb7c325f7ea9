"""Nexmark's queries as people write them first: each runs, or is refused with what to write instead."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from headwater import Pipeline, agg, joins, windows
from headwater.engine.plan.checking import check
from headwater.engine.runner import Runner
from headwater.errors import PipelineError
from headwater.testing.harness import Harness

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
SQL = {
    "q0": "SELECT auction, bidder, price, at FROM bids",
    "q1": "SELECT auction, bidder, price * 0.908 AS price, at FROM bids",
    "q2": "SELECT auction, price FROM bids WHERE auction % 123 = 0",
    "q3": """SELECT p.name, p.state, a.id FROM auctions a JOIN people p ON a.seller = p.id
             WHERE a.category = 10 AND p.state IN ('OR', 'ID', 'CA')""",
    "q4": """SELECT category, avg(final) AS price FROM (
               SELECT max(b.price) AS final, a.category FROM auctions a JOIN bids b ON a.id = b.auction
               WHERE b.at BETWEEN a.at AND a.expires GROUP BY a.id, a.category)
             GROUP BY category""",
    "q5": """WITH hot AS (SELECT auction, count(*) AS n, window(at, '10 seconds', '2 seconds') AS w
                          FROM bids GROUP BY auction, window(at, '10 seconds', '2 seconds'))
             SELECT * FROM hot WHERE n = (SELECT max(n) FROM hot)""",
    "q6": """SELECT auction, avg(price) OVER (PARTITION BY bidder ORDER BY at ROWS 10 PRECEDING) AS price
             FROM bids""",
    "q7": """SELECT b.auction, b.price FROM bids b JOIN (
               SELECT max(price) AS top, window(at, '10 seconds').end AS until FROM bids
               GROUP BY window(at, '10 seconds')) m ON b.price = m.top""",
    "q8": """SELECT p.id, p.name, window(p.at, '10 seconds').start AS began FROM people p
             JOIN auctions a ON p.id = a.seller""",
}
RUN = ("q0", "q1", "q2")


def frames(name: str) -> Callable[..., DataFrame]:
    """Return a query as a function that looks right to who knows Spark."""

    def q0(bids: DataFrame) -> DataFrame:
        return bids

    def q1(bids: DataFrame) -> DataFrame:
        return bids.withColumn("price", F.col("price") * 0.908)

    def q2(bids: DataFrame) -> DataFrame:
        return bids.filter(F.col("auction") % 123 == 0)

    def q3(auctions: DataFrame, people: DataFrame) -> DataFrame:
        return auctions.join(people, auctions.seller == people.id).select(people.name, auctions.id)

    def q4(auctions: DataFrame, bids: DataFrame) -> DataFrame:
        joined = auctions.join(bids, auctions.id == bids.auction)
        return joined.groupBy("category").agg(F.avg("price").alias("price"))

    def q5(bids: DataFrame) -> DataFrame:
        return bids.groupBy(F.window("at", "10 seconds", "2 seconds"), "auction").count()

    def q6(bids: DataFrame) -> DataFrame:
        return bids.groupBy("bidder").applyInPandas(lambda rows: rows.tail(10), bids.schema)

    def q7(bids: DataFrame) -> DataFrame:
        return bids.groupBy(F.window("at", "10 seconds")).agg(F.max_by("auction", "price").alias("auction"))

    def q8(people: DataFrame, auctions: DataFrame) -> DataFrame:
        sellers = auctions.select("seller").distinct()
        return people.join(sellers, people.id == sellers.seller, "left_semi")

    return {each.__name__: each for each in (q0, q1, q2, q3, q4, q5, q6, q7, q8)}[name]


def auction_house(url: str) -> Pipeline:
    pipeline = Pipeline("nexmark", log=url)
    pipeline.source("bids", "auction BIGINT, bidder BIGINT, price DOUBLE, at TIMESTAMP", event_time="at")
    pipeline.table(
        "auctions", "id BIGINT, seller BIGINT, category BIGINT, at TIMESTAMP, expires TIMESTAMP", key="id"
    )
    pipeline.table("people", "id BIGINT, name STRING, state STRING, at TIMESTAMP", key="id")
    return pipeline


def refused(look: Callable[[], object]) -> PipelineError | None:
    try:
        look()
    except PipelineError as error:
        return error
    return None


@pytest.mark.parametrize("name", SQL)
@pytest.mark.parametrize("way", ["SQL", "DataFrames"])
def test_check_and_run_agree_on_every_query(spark: SparkSession, url: str, name: str, way: str) -> None:
    pipeline = auction_house(url)
    if way == "SQL":
        pipeline.sql(name, SQL[name], kind="stream")
    else:
        pipeline.stream()(frames(name))
    before = refused(lambda: check(pipeline, spark))
    later = refused(lambda: Runner(pipeline, spark=spark).close())
    assert str(before) == str(later)
    assert (before is None) == (name in RUN)
    if before is not None:
        assert before.hint and any(word in before.hint for word in ("joins.", "windows.", "dedup", "tables."))
        assert "java" not in str(before) and "Exception" not in str(before)


def test_queries_written_with_operators_run(spark: SparkSession, url: str) -> None:
    pipeline = auction_house(url)
    for name in RUN:
        pipeline.sql(name, SQL[name], kind="stream")

    @pipeline.view(key="id")
    def q3(auctions: DataFrame, people: DataFrame) -> DataFrame:
        joined = auctions.transform(joins.tables(people, on={"seller": "id"}, prefix="seller_"))
        return joined.filter("state = 'OR'").select("id", "name")

    @pipeline.view(key="window_start")
    def q7(bids: DataFrame) -> DataFrame:
        return bids.transform(windows.tumbling("10 seconds", by=[], price=agg.max("price")))

    check(pipeline, spark)
    with Harness(pipeline, spark=spark) as harness:
        harness.send("people", {"id": 1, "name": "ada", "state": "OR", "at": NOON})
        harness.send("auctions", [{"id": n, "seller": 1, "category": 10, "at": NOON} for n in (10, 11)])
        harness.send("bids", [{"auction": 123, "bidder": 1, "price": float(n), "at": NOON} for n in range(3)])
        harness.advance(NOON + timedelta(minutes=1))
        harness.step()
        harness.send("people", {"id": 1, "name": "ada", "state": "WA", "at": NOON})
        harness.delete("auctions", 10)
        harness.step()
        assert harness.view("q3") == []
        assert [row["price"] for row in harness.view("q7")] == [2.0]
        assert len(harness.stream("q2")) == 3
        harness.verify()
