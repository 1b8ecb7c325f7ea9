"""User functions of a plan as Spark's workers call them when rows that fail are looked for.

A function that raises is called again on fewer of its rows (``headwater.bisection``), until single ones are
left that fail by themselves; those are reported, and the others go on. Invariant: no row is reported on
which the function, called with that row alone, does not raise; what fails only together with others is not.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.accumulators import Accumulator, AccumulatorParam
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import DataType, StructType
from pyspark.util import PythonEvalType

from headwater.bisection import failing

Reports = dict[int, tuple[int, str]]
"""By the number of a row: how deep in the plan it has failed, and the traceback, if there is one."""
Function = Callable[..., Any]


class FirstReport(AccumulatorParam[Reports]):
    """Gathers reports of all tasks; of a row that failed twice, the one nearer to the source counts."""

    def zero(self, value: Reports) -> Reports:
        """Return no reports."""
        return {}

    def addInPlace(self, value1: Reports, value2: Reports) -> Reports:
        """Add reports to others."""
        for row, report in value2.items():
            value1[row] = min(report, value1.get(row, report))
        return value1


class Reporter:
    """Reports rows on which one step of a plan fails: of each task the first ones, which are enough."""

    def __init__(self, reports: Accumulator[Reports], depth: int, limit: int):
        self._reports, self._depth, self._limit = reports, depth, limit
        self._rows: set[int] = set()

    def report(self, row: int, why: str) -> None:
        """Report a row; one may have become several on its way."""
        if len(self._rows) < self._limit and row not in self._rows:
            self._rows.add(row)
            self._reports.add({row: (self._depth, why)})


class RowByRow:
    """Functions, each on the result of the one before, that are called with the values of a row."""

    def __init__(self, functions: Sequence[Function], reporter: Reporter):
        self._functions, self._reporter = functions, reporter

    def __call__(self, *values: Any, **named: Any) -> Any:
        """Return the result for a row, whose number is the last value; nothing if there is none."""
        *arguments, row = values
        first, *others = self._functions
        try:
            result = first(*arguments, **named)
            for function in others:
                result = function(result)
        except Exception:  # a user's code raises anything
            self._reporter.report(row, traceback.format_exc())
            return None
        return result


class Columnar:
    """Functions, each on the result of the one before, that are called with columns (pandas or Arrow)."""

    def __init__(self, functions: Sequence[Function], returns: DataType, reporter: Reporter):
        self._functions, self._returns, self._reporter = functions, returns, reporter

    def __call__(self, *columns: Any) -> Any:
        """Return the column of results, with nulls where there is none; the last column numbers the rows."""
        *values, rows = columns
        if not len(rows):
            return self._result(values)
        parts: list[Any] = []

        def attempt(start: int, end: int) -> str | None:
            try:
                parts.append(self._result([_cut(column, start, end) for column in values]))
            except Exception:  # as above
                return traceback.format_exc()
            return None

        for row, error in failing(len(rows), attempt):
            self._reporter.report(int(_value(rows, row)), error)
            parts.append(self._nothing(rows))
        return parts[0] if len(parts) == 1 else self._joined(parts)

    def _result(self, values: Sequence[Any]) -> Any:
        first, *others = self._functions
        result = first(*values)
        for function in others:
            result = function(result)
        return result

    def _nothing(self, rows: Any) -> Any:
        if isinstance(rows, pa.Array):
            return pa.nulls(1, to_arrow_type(self._returns, timezone="UTC"))
        import pandas as pd  # who uses it has loaded it; for the others it would take half a second

        if isinstance(self._returns, StructType):
            return pd.DataFrame({name: [None] for name in self._returns.names}, dtype=object)
        return pd.Series([None], dtype=object)

    def _joined(self, parts: list[Any]) -> Any:
        if isinstance(parts[0], pa.Array | pa.ChunkedArray):
            kind = to_arrow_type(self._returns, timezone="UTC")
            return pa.chunked_array([part.cast(kind) for part in parts], kind).combine_chunks()
        import pandas as pd  # as above

        return pd.concat([part.astype(object) for part in parts], ignore_index=True)


class ColumnarBatches(Columnar):
    """The same for functions from an iterator of columns to another: they are begun anew for each batch."""

    def __call__(self, batches: Iterator[tuple[Any, ...]]) -> Iterator[Any]:
        """Yield a column of results for each batch."""
        columnar = Columnar([self._first, *self._functions[1:]], self._returns, self._reporter)
        return (columnar(*batch) for batch in batches)

    def _first(self, *columns: Any) -> Any:
        parts = list(self._functions[0](iter([columns if len(columns) > 1 else columns[0]])))
        return parts[0] if len(parts) == 1 else self._joined(parts)


class Mapped:
    """A function from an iterator of batches of rows to another; nobody knows what becomes of a row."""

    def __init__(self, function: Function, reporter: Reporter):
        self._function, self._reporter = function, reporter

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        """Yield what becomes of batches, whose last columns number the rows and tell which have failed."""
        for batch in batches:
            yield from self._mapped(self._sound(batch))

    def _mapped(self, batch: Any) -> list[Any]:
        parts: list[Any] = []

        def attempt(start: int, end: int) -> str | None:
            try:
                parts.extend(list(self._function(iter([_without_last(_cut(batch, start, end))]))))
            except Exception:  # as above
                return traceback.format_exc()
            return None

        for row, error in failing(len(batch), attempt):
            self._reporter.report(int(_value(_last(batch), row)), error)
        return parts

    def _sound(self, batch: Any) -> Any:
        """Return a batch without its last column and the rows that it tells have failed before."""
        rest, sound = _without_last(batch), _arrow(_last(batch)).is_null()
        for row in _arrow(_last(rest)).filter(pc.invert(sound)).to_pylist():
            self._reporter.report(row, "")
        return rest.filter(sound) if isinstance(rest, pa.RecordBatch) else rest[sound.to_numpy(False)]


def guarded(
    kind: int, functions: Sequence[Function], returns: DataType, reporter: Reporter
) -> Function | None:
    """Return functions, chained, as one that reports; None for a kind that is not known here."""
    if kind in (PythonEvalType.SQL_BATCHED_UDF, PythonEvalType.SQL_ARROW_BATCHED_UDF):
        return RowByRow(functions, reporter)
    if kind in (PythonEvalType.SQL_SCALAR_PANDAS_UDF, PythonEvalType.SQL_SCALAR_ARROW_UDF):
        return Columnar(functions, returns, reporter)
    if kind in (PythonEvalType.SQL_SCALAR_PANDAS_ITER_UDF, PythonEvalType.SQL_SCALAR_ARROW_ITER_UDF):
        return ColumnarBatches(functions, returns, reporter) if len(functions) == 1 else None
    if kind in (PythonEvalType.SQL_MAP_PANDAS_ITER_UDF, PythonEvalType.SQL_MAP_ARROW_ITER_UDF):
        return Mapped(functions[0], reporter)
    return None


def _arrow(column: Any) -> pa.Array:
    return column if isinstance(column, pa.Array) else pa.array(column, from_pandas=True)


def _cut(columns: Any, start: int, end: int) -> Any:
    if isinstance(columns, pa.Array | pa.RecordBatch):
        return columns.slice(start, end - start)
    return columns.iloc[start:end]


def _value(column: Any, row: int) -> Any:
    return column[row].as_py() if isinstance(column, pa.Array) else column.iloc[row]


def _last(batch: Any) -> Any:
    return batch.column(batch.num_columns - 1) if isinstance(batch, pa.RecordBatch) else batch.iloc[:, -1]


def _without_last(batch: Any) -> Any:
    if isinstance(batch, pa.RecordBatch):
        return batch.select(batch.schema.names[:-1])
    return batch.iloc[:, :-1]
