"""What every aggregate has: a check of its column, and a result over all rows as one group."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from headwater.errors import UsageError
from headwater.operators.aggregates.aggregate import (
    check,
    is_any,
    is_integer,
    is_moment,
    is_number,
    is_ordered,
)
from headwater.operators.aggregates.extremes import First, Max
from headwater.operators.aggregates.totals import Count, Sum
from headwater.schema import parse

SCHEMA = parse("n BIGINT, s STRING, free VARIANT")


def test_a_column_that_is_taken_is_told_by_its_type() -> None:
    assert check("sum", "n", SCHEMA, is_number) == pa.int64()
    assert check("count", "free", SCHEMA, is_any) == SCHEMA.field("free").type


def test_a_column_that_is_not_taken_is_refused_with_its_type() -> None:
    with pytest.raises(UsageError, match='sum cannot take column "s"') as refused:
        check("sum", "s", SCHEMA, is_number)
    assert "it is STRING" in str(refused.value)
    with pytest.raises(UsageError, match='sum finds no column "m"'):
        check("sum", "m", SCHEMA, is_number)


def test_free_json_is_no_text_to_those_who_compare() -> None:
    assert is_ordered(SCHEMA.field("free").type)
    with pytest.raises(UsageError, match='max cannot take column "free"'):
        check("max", "free", SCHEMA, is_ordered)


def test_a_type_that_spark_does_not_have_is_refused_by_its_own_name() -> None:
    odd = pa.schema([("u", pa.uint64())])
    with pytest.raises(UsageError, match='sum cannot take column "u"') as refused:
        check("sum", "u", odd, is_number)
    assert "uint64" in str(refused.value)


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        (pa.int8(), "integer number ordered"),
        (pa.uint32(), "integer number ordered"),
        (pa.uint64(), ""),
        (pa.float32(), "number ordered"),
        (pa.decimal128(9, 2), "number ordered"),
        (pa.date32(), "moment ordered"),
        (pa.timestamp("us", "UTC"), "moment ordered"),
        (pa.bool_(), "ordered"),
        (pa.binary(), "ordered"),
        (pa.list_(pa.int8()), ""),
    ],
    ids=str,
)
def test_kinds_of_types(kind: pa.DataType, told: str) -> None:
    kinds = {"integer": is_integer, "number": is_number, "moment": is_moment, "ordered": is_ordered}
    assert [name for name, tells in kinds.items() if tells(kind)] == [n for n in kinds if n in told.split()]


def test_over_all_rows_is_one_group_in_the_order_of_the_rows_if_no_times_are_given() -> None:
    rows = pa.table({"n": [3, None, 5]})
    assert [each.over(rows) for each in (Count(), Count("n"), Sum("n"), Max("n"))] == [[3], [2], [8], [5]]
    assert First("n").over(rows) == [3]
    assert First("n").over(rows, np.array([2, 1, 0])) == [5]
    assert Sum("n").within(None) == Sum("n")
