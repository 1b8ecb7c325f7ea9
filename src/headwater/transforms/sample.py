"""A few rows to try an operator on, in a second and without Spark: what the examples of ``help()`` run on.

Invariant: what comes out is what a batch over the same rows gives, which is what a stream of them gives in
the end, by the code that runs in a pipeline.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

import pyarrow as pa

from headwater import durations
from headwater import schema as schemas
from headwater.names import listed
from headwater.operators.event_time import FOREVER
from headwater.operators.operator import Operator, run
from headwater.operators.spec import OperatorSpec, Side
from headwater.record import DELETED

DAY = date(2026, 1, 1)
"""The day of times that are given without one."""


@dataclass(frozen=True)
class Sample:
    """Rows in memory that stand in for a DataFrame: ``transform`` applies an operator to them."""

    rows: pa.Table
    event_time: str | None = None
    key: tuple[str, ...] = ()
    """The key, if the rows are the changes of a table."""

    def transform(self, operator: Callable[[Sample], Sample]) -> Sample:
        """Return what comes out of an operator for all rows at once, when time has passed them.

        - ``operator``: what ``windows.tumbling``, ``dedup`` and the like return.

        >>> from headwater import latest
        >>> rows = sample("id BIGINT, at TIMESTAMP", (1, "12:00"), (1, "12:01"), event_time="at")
        >>> rows.transform(latest(by="id")).show()
        id  at
        1   12:01:00
        """
        return operator(self)

    def show(self, *columns: str) -> None:
        """Print the rows as a grid.

        - ``*columns``: which columns; all, if none is named.

        >>> sample("id BIGINT, name STRING", (1, "tea")).show("name")
        name
        tea
        """
        chosen = self.rows.select(list(columns) or self.rows.column_names)
        lines = [chosen.column_names, *(map(_text, row.values()) for row in chosen.to_pylist())]
        cells = [list(line) for line in lines]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        for line in cells:
            print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def sample(
    schema: str | pa.Schema,
    *rows: Sequence[Any],
    event_time: str | None = None,
    key: str | Sequence[str] = (),
) -> Sample:
    """Make a few rows to try an operator on.

    - ``schema``: the columns as Spark DDL, or an Arrow schema.
    - ``*rows``: a tuple for each row. A time may be text: ``"2026-01-01T12:00"``, or ``"12:00"`` on that day.
    - ``event_time=None``: the TIMESTAMP column that says when an event happened.
    - ``key=()``: the key, if the rows are the changes of a table. It then has the column ``_deleted`` too.

    >>> sample("id BIGINT, at TIMESTAMP", (1, "12:00"), (2, "12:00:30"), event_time="at").show()
    id  at
    1   12:00:00
    2   12:00:30
    """
    names = listed(key)
    fields = list(schemas.read(schema))
    columns = [[_value(row[n], field.type) for row in rows] for n, field in enumerate(fields)]
    if names and DELETED not in [field.name for field in fields]:
        fields, columns = [*fields, pa.field(DELETED, pa.bool_())], [*columns, [False] * len(rows)]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, fields, strict=True)]
    return Sample(pa.table(arrays, schema=pa.schema(fields)), event_time, names)


def run_over(spec: OperatorSpec, rows: Sample) -> Sample:
    """Run an operator over all rows of its inputs, when time has passed them."""
    inputs = (rows,) if spec.pairing is None else (rows, spec.right)
    operator: Operator[Any] = spec.build(
        *(Side(side.rows.schema, side.event_time, side.key) for side in inputs)
    )
    table = rows.rows
    if spec.pairing is not None:
        right = spec.right.rows
        schema = spec.pairing.schema(spec.name, table.schema, right.schema)
        table = spec.pairing.sent(table, right, schema)
    operator.output_schema(table.schema)  # which refuses columns that it cannot take
    out = pa.concat_tables([step.out for step in run(operator, table, FOREVER)])
    time = operator.event_time_out or rows.event_time
    return Sample(out, time if time in out.column_names else None, operator.identity)


def _value(value: Any, kind: pa.DataType) -> Any:
    """Read a time that is given as text."""
    if not (pa.types.is_timestamp(kind) and isinstance(value, str)):
        return value
    return durations.parse_instant(value if "-" in value else f"{DAY}T{value}")


def _text(value: Any) -> str:
    if not isinstance(value, datetime):
        return str(value)
    return f"{value:%H:%M:%S}" if value.date() == DAY else f"{value:%Y-%m-%d %H:%M:%S}"
