"""User functions that report the rows on which they fail, and go on with the others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import LongType, StringType, StructType
from pyspark.util import PythonEvalType

from headwater.engine.failure.guarded_code import FirstReport, Function, Reporter, Reports, guarded

AMOUNTS = st.lists(st.sampled_from(["1", "2", "two"]), max_size=40)


class Gathered:
    """Reports, as an accumulator of one task gathers them."""

    def __init__(self) -> None:
        self.value: Reports = {}

    def add(self, report: Reports) -> None:
        self.value = FirstReport().addInPlace(self.value, report)

    @property
    def rows(self) -> list[int]:
        return sorted(self.value)


def made(kind: int, function: Function, *more: Function, most: int = 100) -> tuple[Any, Gathered]:
    gathered = Gathered()
    reporter = Reporter(gathered, 1, most)  # type: ignore[arg-type]
    return guarded(kind, [function, *more], LongType(), reporter), gathered


def expected(amounts: list[str]) -> tuple[list[int | None], list[int]]:
    numbers = [None if amount == "two" else int(amount) for amount in amounts]
    return numbers, [row for row, number in enumerate(numbers) if number is None]


def of_series(texts: pd.Series) -> pd.Series:
    return texts.map(int)


def of_array(texts: pa.Array) -> pa.Array:
    return pa.array([int(text) for text in texts.to_pylist()], pa.int64())


def each(function: Function) -> Function:
    def batches(given: Iterator[Any]) -> Iterator[Any]:
        return (function(batch) for batch in given)

    return batches


@given(AMOUNTS)
def test_a_function_of_one_row_reports_it(amounts: list[str]) -> None:
    numbers, bad = expected(amounts)
    function, gathered = made(PythonEvalType.SQL_BATCHED_UDF, int, lambda number: number + 1)
    assert [function(amount, row) for row, amount in enumerate(amounts)] == [
        None if number is None else number + 1 for number in numbers
    ]
    assert gathered.rows == bad
    assert all("ValueError: invalid literal" in why for _, why in gathered.value.values())


@given(AMOUNTS.filter(bool), st.booleans())
def test_a_function_of_columns_of_pandas_reports_the_rows(amounts: list[str], batches: bool) -> None:
    numbers, bad = expected(amounts)
    columns = pd.Series(amounts, dtype=object), pd.Series(range(len(amounts)))
    if batches:
        function, gathered = made(PythonEvalType.SQL_SCALAR_PANDAS_ITER_UDF, each(of_series))
        (result,) = function(iter([columns]))
    else:
        function, gathered = made(PythonEvalType.SQL_SCALAR_PANDAS_UDF, of_series)
        result = function(*columns)
    assert pa.array(result, pa.int64(), from_pandas=True).to_pylist() == numbers
    assert gathered.rows == bad


@given(AMOUNTS.filter(bool), st.booleans())
def test_a_function_of_arrow_columns_reports_the_rows(amounts: list[str], batches: bool) -> None:
    numbers, bad = expected(amounts)
    columns = pa.array(amounts, pa.string()), pa.array(range(len(amounts)), pa.int64())
    if batches:
        function, gathered = made(PythonEvalType.SQL_SCALAR_ARROW_ITER_UDF, each(of_array))
        (result,) = function(iter([columns]))
    else:
        function, gathered = made(PythonEvalType.SQL_SCALAR_ARROW_UDF, of_array)
        result = function(*columns)
    assert result.to_pylist() == numbers
    assert gathered.rows == bad


@given(AMOUNTS, st.sets(st.integers(0, 39)), st.booleans())
def test_a_function_of_batches_of_rows_reports_them_and_those_that_failed_before(
    amounts: list[str], before: set[int], pandas: bool
) -> None:
    numbers, bad = expected(amounts)
    marks = [1 if row in before else None for row in range(len(amounts))]
    table = {"amount": amounts, "row": range(len(amounts)), "failed": pa.array(marks, pa.int32())}
    batch = pa.RecordBatch.from_pydict(table)
    if pandas:
        function, gathered = made(PythonEvalType.SQL_MAP_PANDAS_ITER_UDF, each(_mapped_pandas))
        results = [number for part in function(iter([batch.to_pandas()])) for number in part["amount"]]
    else:
        function, gathered = made(PythonEvalType.SQL_MAP_ARROW_ITER_UDF, each(_mapped))
        results = [number for part in function(iter([batch])) for number in part["amount"].to_pylist()]
    failed = {row for row in before if row < len(amounts)}
    assert results == [n for row, n in enumerate(numbers) if n is not None and row not in failed]
    assert set(gathered.rows) == failed | set(bad)


def _mapped(batch: pa.RecordBatch) -> pa.RecordBatch:
    assert batch.schema.names == ["amount"]
    return pa.RecordBatch.from_pydict({"amount": of_array(batch["amount"])})


def _mapped_pandas(rows: pd.DataFrame) -> pd.DataFrame:
    assert list(rows.columns) == ["amount"]
    return pd.DataFrame({"amount": rows["amount"].map(int)})


def test_what_fails_only_together_is_not_reported() -> None:
    def alone(texts: pd.Series) -> pd.Series:
        assert len(texts) < 2
        return texts.map(int)

    function, gathered = made(PythonEvalType.SQL_SCALAR_PANDAS_UDF, alone)
    assert list(function(pd.Series(["1", "2", "3"]), pd.Series(range(3)))) == [1, 2, 3]
    assert gathered.rows == []


def test_structs_of_rows_that_fail_are_rows_of_nulls() -> None:
    def split(texts: pd.Series) -> pd.DataFrame:
        return pd.DataFrame({"number": texts.map(int), "text": texts})

    gathered = Gathered()
    returns = StructType().add("number", LongType()).add("text", StringType())
    reporter = Reporter(gathered, 1, 100)  # type: ignore[arg-type]
    function = guarded(PythonEvalType.SQL_SCALAR_PANDAS_UDF, [split], returns, reporter)
    assert function is not None
    result = function(pd.Series(["1", "two", "3"]), pd.Series(range(3)))
    assert [None if pd.isna(number) else number for number in result["number"]] == [1, None, 3]
    assert gathered.rows == [1]


def test_of_a_task_only_as_many_rows_are_reported_as_are_asked_for() -> None:
    function, gathered = made(PythonEvalType.SQL_BATCHED_UDF, int, most=2)
    for row in (4, 4, 5, 6):  # one row may have become several on its way
        function("two", row)
    assert gathered.rows == [4, 5]


def test_of_a_row_that_fails_twice_the_first_failure_counts() -> None:
    gathered = Gathered()
    for depth in (3, 1, 2):
        gathered.add({7: (depth, str(depth))})
    assert gathered.value == {7: (1, "1")}
