"""What a node may do in Spark: every line of the tables in ``docs/pipelines.md``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from headwater import Pipeline, agg, dedup, joins, latest, tables
from headwater.engine.plan.checking import check
from headwater.engine.runner import Runner
from headwater.errors import PipelineError

DOCS = Path(__file__).parents[4] / "docs" / "pipelines.md"
ORDERS = "id BIGINT, who STRING, amount DOUBLE, at TIMESTAMP"


class Rows:
    """What a case is made of: streams, tables, and the session."""

    def __init__(self, **frames: DataFrame):
        self.orders, self.visits = frames["orders"], frames["visits"]
        self.people, self.items = frames["people"], frames["items"]
        self.spark = self.orders.sparkSession

    def constants(self) -> DataFrame:
        return self.spark.createDataFrame([("ada", 1)], "who STRING, tier INT")


Case = Callable[[Rows], DataFrame]


def same(rows: pd.DataFrame) -> pd.DataFrame:
    return rows


def both(left: pd.DataFrame, right: pd.DataFrame) -> pd.DataFrame:
    return left


def passed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


def remembered(key: Any, rows: Any, state: Any) -> Iterator[pd.DataFrame]:
    yield from rows


def sql(rows: Rows, statement: str) -> DataFrame:
    for name in ("orders", "visits", "people", "items"):
        getattr(rows, name).createOrReplaceTempView(name)
    return rows.spark.sql(statement)


def counted(rows: Rows) -> DataFrame:
    minute = Window.partitionBy("who").orderBy(F.col("at").cast("long")).rangeBetween(-60, 0)
    return rows.orders.withColumn("n", F.count("*").over(minute))


def recent(rows: Rows) -> DataFrame:
    best = Window.partitionBy("who").orderBy(F.desc("at"))
    return rows.orders.withColumn("n", F.row_number().over(best)).filter("n = 1")


STATE = {"outputStructType": "id BIGINT", "stateStructType": "n BIGINT", "outputMode": "append"}

INSTEAD: dict[str, list[Case]] = {
    '`groupBy(window("at", "1 minute"), …)`': [
        lambda r: r.orders.groupBy(F.window("at", "1 minute"), "who").count(),
        lambda r: sql(r, "SELECT window(at, '1 minute') AS w, count(*) AS n FROM orders GROUP BY 1"),
    ],
    "`groupBy(session_window(…), …)`": [
        lambda r: r.orders.groupBy(F.session_window("at", "1 minute"), "who").count()
    ],
    "`groupBy` without a window": [
        lambda r: r.orders.groupBy("who").count(),
        lambda r: r.orders.agg(F.sum("amount")),
        lambda r: r.orders.groupBy("who").pivot("id", [1, 2]).count(),
        lambda r: r.orders.rollup("who").count(),
        lambda r: sql(r, "SELECT who, sum(amount) AS s FROM orders GROUP BY who HAVING s > 1"),
    ],
    "`groupBy` over a table": [lambda r: r.people.groupBy("city").count()],
    "a window function over a range of time": [
        counted,
        lambda r: sql(r, "SELECT lag(id) OVER (PARTITION BY who ORDER BY at) AS n FROM orders"),
    ],
    "`distinct`, `dropDuplicates`, `dropDuplicatesWithinWatermark`": [
        lambda r: r.orders.distinct(),
        lambda r: r.orders.dropDuplicates(["id"]),
        lambda r: sql(r, "SELECT who FROM orders UNION SELECT who FROM visits"),
    ],
    "`max_by`, `row_number() … = 1`": [recent, lambda r: r.orders.groupBy("who").agg(F.max_by("id", "at"))],
    "`transformWithState`, `applyInPandasWithState`": [
        lambda r: r.orders.groupBy("who").applyInPandasWithState(remembered, timeoutConf="NoTimeout", **STATE)
    ],
    "`groupBy(…).applyInPandas`, `applyInArrow`": [
        lambda r: r.orders.groupBy("who").applyInPandas(same, r.orders.schema),
        lambda r: r.orders.groupBy("who").applyInArrow(lambda rows: rows, r.orders.schema),
    ],
    "`cogroup`": [
        lambda r: (
            r.orders.groupBy("who").cogroup(r.visits.groupBy("who")).applyInPandas(both, r.orders.schema)
        )
    ],
    "a join of two streams in a span of time": [
        lambda r: r.orders.join(r.visits, "who"),
        lambda r: r.orders.alias("a").join(r.orders.alias("b"), F.expr("a.id = b.id")),
        lambda r: sql(r, "SELECT o.id FROM orders o, visits v WHERE o.who = v.who"),
        lambda r: sql(
            r, "WITH big AS (SELECT * FROM orders) SELECT b.id FROM big b JOIN big c ON b.id = c.id"
        ),
    ],
    "a join with a table, as it is now": [
        lambda r: r.orders.join(r.people, "who", "left"),
        lambda r: r.people.join(r.orders, "who"),
        lambda r: r.orders.join(F.broadcast(r.people), "who", "left_semi"),
    ],
    "a join with a table, as it was then": [
        lambda r: sql(r, "SELECT o.id, p.city FROM orders o JOIN people p ON o.who = p.who")
    ],
    "a join of two tables": [
        lambda r: sql(
            r, "SELECT i.id, p.city FROM items i JOIN people p ON i.who = p.who WHERE p.city = 'OR'"
        ),
        lambda r: r.items.join(r.people, "who"),
        lambda r: r.items.crossJoin(r.people.select("city")),
    ],
    "a subquery over an upstream": [
        lambda r: sql(r, "SELECT * FROM orders WHERE who IN (SELECT who FROM people)"),
        lambda r: sql(r, "SELECT *, (SELECT max(at) FROM visits) AS seen FROM orders"),
        lambda r: sql(
            r, "SELECT * FROM orders o WHERE NOT EXISTS (SELECT 1 FROM visits v WHERE v.who = o.who)"
        ),
    ],
    "`intersect`, `subtract`, `exceptAll`": [
        lambda r: r.orders.select("who").intersect(r.visits.select("who")),
        lambda r: r.orders.select("who").subtract(r.visits.select("who")),
        lambda r: r.orders.select("who").exceptAll(r.visits.select("who")),
    ],
}
REFUSED: dict[str, list[Case]] = {
    "`orderBy`, `sortWithinPartitions`": [
        lambda r: r.orders.orderBy("id"),
        lambda r: r.orders.sortWithinPartitions("id"),
    ],
    "`limit`, `offset`": [lambda r: r.orders.limit(3), lambda r: r.orders.offset(3)],
    "`repartition`, `coalesce`": [
        lambda r: r.orders.repartition(3),
        lambda r: r.orders.repartition("who"),
        lambda r: r.orders.coalesce(1),
    ],
    "`sample`, `randomSplit`": [
        lambda r: r.orders.sample(0.1),
        lambda r: r.orders.randomSplit([0.5, 0.5])[0],
    ],
    "`withWatermark`": [lambda r: r.orders.withWatermark("at", "1 minute")],
    "`observe`": [lambda r: r.orders.observe("seen", F.count(F.lit(1)))],
    "a lateral join": [lambda r: sql(r, "SELECT o.*, m FROM orders o, LATERAL (SELECT o.id + 1 AS m)")],
    "`rand()`, `uuid()`, `monotonically_increasing_id()`": [
        lambda r: r.orders.withColumn("r", F.rand(1) + 1),
        lambda r: r.orders.filter(F.expr("uuid() > 'x'")),
        lambda r: r.orders.withColumn("n", F.monotonically_increasing_id()),
        lambda r: r.orders.withColumn("n", F.udf(len, "int").asNondeterministic()("who")),
    ],
    "`current_timestamp()`, `now()`, `current_date()`": [
        lambda r: r.orders.withColumn("r", F.current_timestamp()),
        lambda r: r.orders.filter("at < now() - INTERVAL 1 HOUR"),
        lambda r: r.orders.withColumn("day", F.date_sub(F.current_date(), 1)),
    ],
    "`count()`, `collect()`, `toPandas()` in a function": [
        lambda r: r.orders.filter(F.lit(r.orders.count()) > 0),
        lambda r: r.spark.createDataFrame(r.orders.collect(), ORDERS),
        lambda r: r.orders if r.orders.isEmpty() else r.orders.limit(1),
    ],
    "a union with constants, or nothing but constants": [
        lambda r: r.orders.select("who").union(r.constants().select("who")),
        lambda r: r.constants(),
        lambda r: sql(r, "SELECT 1 AS id"),
    ],
    "a join with constants without `F.broadcast`": [lambda r: r.orders.join(r.constants(), "who")],
    "a join that keeps constants which find no row": [
        lambda r: r.orders.join(F.broadcast(r.constants()), "who", "right"),
        lambda r: r.orders.join(F.broadcast(r.constants()), "who", "full"),
        lambda r: F.broadcast(r.constants()).join(r.orders, "who", "left_anti"),
    ],
    "a file, or a table of Spark's catalog": [
        lambda r: r.orders.join(F.broadcast(r.spark.read.text(__file__)), F.expr("who = value"), "left")
    ],
    "a stream of Spark's own": [lambda r: r.spark.readStream.format("rate").load()],
    "a filter of a table before `joins.lookup`, `as_of`, `tables` or `tables.group`": [
        lambda r: r.orders.transform(joins.lookup(r.people.filter("city = 'OR'"), on="who")),
        lambda r: r.items.transform(joins.tables(r.people.filter("city = 'OR'"), on="who")),
        lambda r: r.people.filter("city = 'OR'").transform(tables.group("city", n=agg.count())),
    ],
    "a table without its `_deleted` before an operator": [
        lambda r: r.orders.transform(joins.lookup(r.people.select("who", "city"), on="who"))
    ],
    "a view of a table beside another upstream": [
        lambda r: r.people.select("who").union(r.orders.select("who")),
        lambda r: r.items.select("who").union(r.people.select("who")),
    ],
}
ALLOWED: dict[str, Case] = {
    "as it is": lambda r: r.orders,
    "columns": lambda r: r.orders.select("id", F.upper("who").alias("who")).withColumn("n", F.lit(1)),
    "a filter": lambda r: r.orders.filter("amount > 1").dropna().fillna(0.0),
    "explode": lambda r: r.orders.select("id", F.explode(F.split("who", ","))),
    "LATERAL VIEW": lambda r: sql(r, "SELECT id, c FROM orders LATERAL VIEW explode(split(who, ',')) t AS c"),
    "unpivot": lambda r: r.orders.unpivot(["id"], ["who"], "name", "value"),
    "a union": lambda r: r.orders.select("who").union(r.visits.select("who")),
    "a union with itself": lambda r: r.orders.unionByName(r.orders),
    "a UDF": lambda r: r.orders.select("id", F.udf(str.upper, "string")("who").alias("who")),
    "mapInArrow": lambda r: r.orders.mapInArrow(passed, r.orders.schema),
    "SQL": lambda r: sql(r, "WITH big AS (SELECT * FROM orders WHERE amount > 1) SELECT id, at FROM big"),
    "constants": lambda r: r.orders.join(F.broadcast(r.constants()), "who", "left"),
    "constants in SQL": lambda r: sql(
        r, "SELECT /*+ BROADCAST(t) */ o.id, t.n FROM orders o JOIN (VALUES ('ada', 1)) t(who, n) USING (who)"
    ),
    "a subquery of constants": lambda r: r.orders.filter("who IN (SELECT explode(array('ada', 'bob')))"),
    "the window of a time": lambda r: r.orders.withColumn("w", F.window("at", "1 minute").start),
}


def written(heading: str) -> dict[str, str]:
    """Return the lines of a table of the page: what is in the first column, and what to write instead."""
    text = DOCS.read_text().split(heading)[1].split("\n\n")[0]
    lines = [line.strip("| ").split(" | ") for line in text.splitlines()[2:]]
    place = 1 if heading.startswith("| Instead") else 2
    return {line[0]: line[place] for line in lines}


def pipeline_of(case: Case, kind: str, **more: Any) -> Pipeline:
    pipeline = Pipeline("shop", **more)
    pipeline.source("orders", ORDERS, event_time="at")
    pipeline.source("visits", "who STRING, page STRING, at TIMESTAMP", event_time="at")
    pipeline.table("people", "who STRING, city STRING", key="who")
    pipeline.table("items", "id BIGINT, who STRING", key="id")

    def node(orders: DataFrame, visits: DataFrame, people: DataFrame, items: DataFrame) -> DataFrame:
        return case(Rows(orders=orders, visits=visits, people=people, items=items))

    if kind == "view":
        pipeline.view(key="who")(node)
    else:
        pipeline.stream()(node)
    return pipeline


def refusal(spark: SparkSession, case: Case, kind: str) -> PipelineError:
    with pytest.raises(PipelineError) as caught:
        check(pipeline_of(case, kind), spark)
    error = caught.value
    assert error.location is not None and "test_row_by_row.py" in error.location
    assert error.hint and "exception" not in f"{error.detail}".lower() and "SQLSTATE" not in str(error)
    return error


def after(case: Case) -> Case:
    """Return a case that does the same with what comes out of an operator."""

    def finished(rows: Rows) -> DataFrame:
        results = rows.orders.transform(dedup(on="id", within="1 hour"))
        return case(Rows(orders=results, visits=results, people=results, items=results))

    return finished


def test_the_page_has_a_line_for_all_that_is_tried_here() -> None:
    assert set(written("| Instead of Spark's")) == set(INSTEAD)
    assert set(written("| Refused")) == set(REFUSED)


@pytest.mark.parametrize("line", INSTEAD)
def test_what_needs_other_rows_is_refused_with_the_operator_to_use(spark: SparkSession, line: str) -> None:
    for case in INSTEAD[line]:
        error = refusal(spark, case, "view" if "table" in line else "stream")
        named = re.findall(r"`([\w.]+)`\]", written("| Instead of Spark's")[line])
        assert any(name in (error.hint or "") for name in named), error.hint


@pytest.mark.parametrize("line", [line for line in INSTEAD if "table" not in line])
def test_what_needs_other_rows_is_refused_after_an_operator_too(spark: SparkSession, line: str) -> None:
    for case in INSTEAD[line]:
        error = refusal(spark, after(case), "stream")
        assert "make a stream" in (error.hint or "") or "subquery" in error.message, error


@pytest.mark.parametrize("line", REFUSED)
def test_what_is_not_row_by_row_is_refused(spark: SparkSession, line: str) -> None:
    for case in REFUSED[line]:
        refusal(spark, case, "view" if "view" in line else "stream")


@pytest.mark.parametrize("name", ALLOWED)
def test_what_is_row_by_row_is_allowed_before_an_operator_and_after_it(
    spark: SparkSession, name: str
) -> None:
    case = ALLOWED[name]
    check(pipeline_of(case, "stream"), spark)
    check(pipeline_of(after(case), "stream"), spark)


def test_a_runner_refuses_what_check_refuses(spark: SparkSession, url: str) -> None:
    pipeline = pipeline_of(lambda r: r.items.join(r.people, "who"), "view", log=url)
    with pytest.raises(PipelineError, match='joins "items" and "people"') as caught:
        Runner(pipeline, spark=spark)
    assert "joins.tables" in (caught.value.hint or "")


def test_an_operator_may_have_code_before_and_after_it(spark: SparkSession) -> None:
    def newest(rows: Rows) -> DataFrame:
        before = rows.orders.filter("amount > 1").withColumn("cents", F.col("amount") * 100)
        return before.transform(latest(by="who")).select("who", "cents")

    assert check(pipeline_of(newest, "view"), spark)["node"].names == ["who", "cents"]
