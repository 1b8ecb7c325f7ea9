"""Values as Arrow, and those that do not fit."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from headwater.capture.change import SourceColumn
from headwater.capture.sqlite.values import decoded


def column(type: pa.DataType, declared: str = "X") -> SourceColumn:
    return SourceColumn("n", type, declared)


@pytest.mark.parametrize(
    ("type", "values", "expected"),
    [
        (pa.int64(), [2**63 - 1, None, -(2**63)], None),
        (pa.float64(), [0.1 + 0.2, 5, None, float("inf")], [0.1 + 0.2, 5.0, None, float("inf")]),
        (pa.string(), ["a\0b", "", None], None),
        (pa.binary(), [b"\0\xff", b"", None], None),
        (pa.bool_(), [0, 1, None], [False, True, None]),
        (pa.decimal128(6, 2), [19.99, 5, None], [Decimal("19.99"), Decimal("5.00"), None]),
    ],
)
def test_values_that_fit_are_the_same(
    type: pa.DataType, values: list[Any], expected: list[Any] | None
) -> None:
    array, unfit = decoded(values, column(type))
    assert array.type == type
    assert array.to_pylist() == (expected or values)
    assert unfit == {}


@pytest.mark.parametrize(
    ("type", "value", "reason"),
    [
        (pa.int64(), "many", "holds the text many"),
        (pa.int64(), 1.5, "holds the number 1.5"),
        (pa.int64(), 9.3e18, "holds the number 9.3e+18"),
        (pa.float64(), 2**53 + 1, "holds the number 9007199254740993"),
        (pa.float64(), "NaN", "holds the text NaN"),
        (pa.string(), b"abc", "holds the bytes 616263"),
        (pa.string(), 7, "holds the number 7"),
        (pa.string(), "\udcff", r"holds the text '\udcff'"),
        (pa.binary(), "abc", "holds the text abc"),
        (pa.bool_(), 2, "holds the number 2"),
        (pa.decimal128(4, 2), 0.1 + 0.2, "holds the number 0.30000000000000004"),
        (pa.decimal128(4, 2), 100, "holds the number 100"),
        (pa.decimal128(4, 2), float("inf"), "holds the number inf"),
    ],
)
def test_a_value_of_another_kind_is_null_and_told_of(type: pa.DataType, value: Any, reason: str) -> None:
    array, unfit = decoded([None, value, None], column(type))
    assert array.to_pylist() == [None, None, None]
    assert unfit == {1: f'column "n" (X) {reason}'}


def test_a_long_value_is_told_by_its_beginning() -> None:
    _, unfit = decoded(["x" * 1000], column(pa.int64(), ""))
    assert unfit == {0: f'column "n" (no type) holds the text {"x" * 60}…'}
