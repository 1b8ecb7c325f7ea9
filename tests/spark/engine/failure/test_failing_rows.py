"""The rows on which code over a DataFrame fails, found by the plan itself, or else by halving."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pandas as pd
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import LongType

from headwater import Pipeline
from headwater.engine.exchange.frames import frame
from headwater.engine.failure.failing_rows import FailingRowSearch
from headwater.engine.failure.guarded_plan import ROW
from headwater.errors import HeadwaterError
from headwater.pipeline.node import Node

MANY = 300
BAD = [3, 77, 78, 299]
Code = Callable[[DataFrame], DataFrame]


class Counted:
    """A search, and how often the code was run for it."""

    def __init__(self, spark: SparkSession, code: Code):
        self._spark, self._code, self.runs = spark, code, 0

    def failing(self, rows: pa.Table, most: int = 100) -> dict[int, str]:
        return FailingRowSearch(node(), self._run).failing(rows, most)

    def _run(self, rows: pa.Table) -> DataFrame:
        self.runs += 1
        return self._code(frame(self._spark, rows).drop(ROW))


def node() -> Node:
    pipeline = Pipeline("shop")
    pipeline.source("orders", "id BIGINT")
    pipeline.sql("strict", "SELECT * FROM orders", key="id")
    found = pipeline["strict"]
    assert isinstance(found, Node)
    return found


def rows(bad: list[int] = BAD, many: int = MANY) -> pa.Table:
    amounts = ["two" if row in bad else str(row + 1) for row in range(many)]
    return pa.table({"id": pa.array(range(many), pa.int64()), "amount": amounts})


def strict(text: str) -> int:
    return int(text)


def of_series(texts: pd.Series) -> pd.Series:
    return texts.map(int)


def of_many(batches: Iterator[pd.Series]) -> Iterator[pd.Series]:
    return (texts.map(int) for texts in batches)


def of_frames(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    return (each.assign(amount=each["amount"].map(int)) for each in frames)


def of_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        if "two" in batch["amount"].to_pylist():
            raise ValueError("two is no number")
        yield batch


def small(number: int | None) -> int | None:
    if number is not None and number > 295:
        raise OverflowError("too large")
    return number


NUMBER = F.udf(strict, LongType(), useArrow=True)
SMALL = F.udf(small, LongType(), useArrow=True)
CODES: dict[str, Code] = {
    "a function of rows": lambda given: given.select(F.udf(strict, "bigint", useArrow=False)("amount")),
    "a function of rows, by Arrow": lambda given: given.withColumn("amount", NUMBER("amount")),
    "a function of another's result": lambda given: given.select(SMALL(NUMBER("amount")).alias("n")),
    "a pandas function": lambda given: given.select(F.pandas_udf(of_series, "bigint")("amount")),
    "a pandas function of batches": lambda given: given.select(F.pandas_udf(of_many, "bigint")("amount")),
    "behind a filter": lambda given: given.filter("id > 2").withColumn("amount", NUMBER("amount")),
    "before a filter": lambda given: given.withColumn("n", NUMBER("amount")).filter("n > 250"),
    "for exploded rows": lambda given: given.select(
        F.explode(F.array("id", "id")).alias("each"), "amount"
    ).withColumn("n", NUMBER("amount")),
    "mapInPandas": lambda given: given.mapInPandas(of_frames, "id BIGINT, amount BIGINT"),
    "mapInArrow": lambda given: given.mapInArrow(of_batches, given.schema).select("id"),
    "a cast": lambda given: given.select("id", F.col("amount").cast("bigint")),
    "a cast in a filter": lambda given: given.filter("CAST(amount AS BIGINT) > 5"),
    "a division": lambda given: given.selectExpr("1 / CASE amount WHEN 'two' THEN 0 ELSE 1 END AS share"),
    "a cast before mapInArrow": lambda given: given.select(
        "id", "amount", F.col("amount").cast("bigint").alias("n")
    ).mapInArrow(lambda batches: batches, "id BIGINT, amount STRING, n BIGINT"),
}


@pytest.mark.parametrize("code", CODES.values(), ids=CODES.keys())
def test_the_plan_names_the_rows_itself(spark: SparkSession, code: Code) -> None:
    search = Counted(spark, code)
    found = search.failing(rows())
    extra = [295, 296, 297, 298] if code is CODES["a function of another's result"] else []
    assert list(found) == sorted({*BAD, *extra})
    assert search.runs <= 3 + len(BAD)  # the third is without rows
    said = set(found.values())
    assert all(any(kind in text for kind in ("Error: ", "Exception: ")) for text in said), said


def test_rows_that_fail_in_different_places_come_with_their_own_error(spark: SparkSession) -> None:
    def code(given: DataFrame) -> DataFrame:
        numbered = given.withColumn("n", NUMBER("amount")).withColumn("m", SMALL("n") + 0)
        return numbered.selectExpr("id", "1 / (n - 10) AS share", "m")

    found = Counted(spark, code).failing(rows([20]))
    assert list(found) == [9, 20, 295, 296, 297, 298, 299]
    assert "Division by zero" in found[9]
    assert found[20].startswith("ValueError: ") and "'two'" in found[20]
    assert all(found[row].startswith("OverflowError: ") for row in range(295, 300))


def test_a_column_that_nobody_looks_at_is_no_reason_to_blame_a_row(spark: SparkSession) -> None:
    def code(given: DataFrame) -> DataFrame:
        unused = given.withColumn("n", F.col("amount").cast("bigint"))
        return unused.selectExpr("1 / (id - 5) AS share")

    assert list(Counted(spark, code).failing(rows())) == [5]


def test_no_more_rows_are_named_than_are_asked_for_and_the_first_come_first(spark: SparkSession) -> None:
    assert list(Counted(spark, CODES["a cast"]).failing(rows(), 2)) == BAD[:2]
    assert list(Counted(spark, CODES["a function of rows, by Arrow"]).failing(rows(), 3)) == BAD[:3]


def test_what_the_plan_does_not_tell_is_found_by_halving(spark: SparkSession) -> None:
    def wrong(texts: pd.Series) -> pd.Series:  # it does not fail, but what becomes of its result does
        return texts.map(lambda text: "no number" if text == "two" else int(text))

    search = Counted(spark, lambda given: given.select(F.pandas_udf(wrong, "bigint")("amount")))
    assert list(search.failing(rows([5], 16))) == [5]
    assert search.runs > 3


def test_what_fails_only_together_is_blamed_on_no_row(spark: SparkSession) -> None:
    def alone(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if len(batch) > 1:
                raise ValueError("one at a time")
            yield batch

    search = Counted(spark, lambda given: given.coalesce(1).mapInArrow(alone, given.schema))
    assert search.failing(rows([], 4)) == {}


def test_a_refusal_is_passed_on(spark: SparkSession) -> None:
    def refused(given: DataFrame) -> DataFrame:
        raise HeadwaterError("not allowed")

    with pytest.raises(HeadwaterError, match="not allowed"):
        Counted(spark, refused).failing(rows())
