"""Rows that were found in several parts come in the order in which they were asked for."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from headwater.operators.memory.entries import Entries
from headwater.operators.memory.found import Found

SCHEMA = pa.schema([("n", pa.int64()), ("text", pa.string())])


def part(*numbers: int) -> Entries:
    rows = pa.table([list(numbers), [f"t{number}" for number in numbers]], schema=SCHEMA)
    return Entries(np.array(numbers), np.array(numbers), rows)


def found(*owner_and_position: tuple[int, int]) -> Found:
    owner, position = (np.array(each) for each in zip(*owner_and_position, strict=True))
    return Found([part(1, 2, 3), part(10, 20)], owner, position, SCHEMA)


def test_rows_of_two_parts_come_in_the_order_asked_for_with_nulls_for_what_is_not_there() -> None:
    some = found((1, 1), (-1, 0), (0, 2), (1, 0), (0, 2))
    assert some.known.tolist() == [True, False, True, True, True]
    assert some.rows("text")["text"].to_pylist() == ["t20", None, "t3", "t10", "t3"]
    assert some.numbers("n", -7).tolist() == [20, -7, 3, 10, 3]


def test_where_nothing_is_found_rows_are_null_and_have_all_columns() -> None:
    nothing = Found([], np.full(2, -1), np.zeros(2, np.int64), SCHEMA)
    assert nothing.rows().to_pylist() == [{"n": None, "text": None}] * 2
    assert nothing.numbers("n", 0).tolist() == [0, 0]
