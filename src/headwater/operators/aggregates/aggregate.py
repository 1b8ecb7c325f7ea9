"""What an aggregate is: rows in, one partial result for each group, and partial results that merge.

A window keeps a partial result for each of its keys, and never the rows. So an aggregate is said in
three parts: what some rows come to, what two such results come to together, and what is told of one.

Invariant: whatever the order of the rows, their split into partial results and the order in which
these are merged, ``finish`` tells the same, to the bit. An aggregate that cannot keep this says so by
``exact``: what it tells then stays within the error that its page names.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from datetime import timedelta
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from headwater import schema as ddl
from headwater.errors import UsageError
from headwater.operators.columns import check_columns, type_text
from headwater.operators.event_time import Times
from headwater.operators.groups import Numbers


class Aggregate(ABC):
    """A way of making one value of many rows; a frozen dataclass, made on the driver, pickled to the workers.

    Rows and partial results come with the number of the group of each, from 0 to ``count`` - 1, and
    every group has at least one. Nulls are passed over. Its text is what the checkpoint remembers.
    """

    exact: ClassVar[bool] = True
    """Whether the same rows always give the same result, however they were split and ordered."""

    @abstractmethod
    def output(self, name: str, schema: pa.Schema) -> list[pa.Field]:
        """Return the columns out for rows of a schema, the first one by the name alone, or refuse it."""

    @abstractmethod
    def state(self, name: str, schema: pa.Schema) -> list[pa.Field]:
        """Return the columns of a partial result; their names begin with the name and a dot."""

    @abstractmethod
    def partial(self, rows: pa.Table, at: Times, groups: Numbers, count: int) -> list[pa.Array]:
        """Return what the rows of each group come to, given their event times."""

    @abstractmethod
    def merge(self, partials: list[pa.Array], groups: Numbers, count: int) -> list[pa.Array]:
        """Return what the partial results of each group come to together."""

    @abstractmethod
    def finish(self, partials: list[pa.Array]) -> list[pa.Array]:
        """Return the columns out, one row for each partial result."""

    def within(self, length: timedelta | None) -> Aggregate:
        """Return the aggregate in windows of a length; None says that lengths differ. Few want to know."""
        return self

    def over(self, rows: pa.Table, at: Times | None = None) -> list[Any]:
        """Return what all rows come to as one group, a value for each column out.

        >>> from headwater import agg
        >>> agg.sum("n").over(pa.table({"n": [1, 2, None]}))
        [3]
        """
        names = [field.name for field in self.output("value", rows.schema)]
        at = np.arange(len(rows)) if at is None else at
        out = self.finish(self.partial(rows, at, np.zeros(len(rows), np.int64), 1))
        return list(pa.table(out, names).to_pylist()[0].values())


def check(what: str, column: str, schema: pa.Schema, takes: Callable[[pa.DataType], bool]) -> pa.DataType:
    """Return the type of a column, or refuse one that is not there or that an aggregate cannot take."""
    check_columns(what, [column], schema)
    field = schema.field(column)
    if takes is is_any or (takes(field.type) and not ddl.is_variant(field)):
        return field.type
    raise UsageError(
        f'{what} cannot take column "{column}"',
        detail=f"it is {type_text(field)}",
        hint=f"see what {what} takes in docs/operators/aggregates.md, and cast the column before",
    )


def is_number(kind: pa.DataType) -> bool:
    """Tell whether a type is one to compute with."""
    return is_integer(kind) or bool(pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def is_integer(kind: pa.DataType) -> bool:
    """Tell whether all values of a type are whole and fit BIGINT."""
    return bool(pa.types.is_integer(kind) and kind != pa.uint64())


def is_ordered(kind: pa.DataType) -> bool:
    """Tell whether the values of a type have an order that people know."""
    plain = pa.types.is_boolean(kind) or pa.types.is_string(kind) or pa.types.is_binary(kind)
    return is_number(kind) or plain or is_moment(kind)


def is_moment(kind: pa.DataType) -> bool:
    """Tell whether a type is a date or a time of day on a date."""
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind))


def is_any(kind: pa.DataType) -> bool:
    """Take every type, and free JSON as the text it is."""
    return True
