"""Rows of two inputs on their way, parted again against a loop over them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from headwater.operators.event_time import NEVER
from headwater.operators.joins.arrivals import Arrived, arrivals, is_left, times_of
from headwater.operators.memory.key_hash import NO_KEY, KeyHashes
from headwater.operators.pairing import Pairing
from headwater.schema import parse
from soaking import examples
from unit.operators.stepping import Row, listed, table

LEFT = parse("k STRING, n BIGINT, at TIMESTAMP")
RIGHT = parse("key STRING, m INT, since TIMESTAMP")
ON = Pairing((("k", "key"), ("n", "m")))
WAY = ON.schema("join", LEFT, RIGHT)
ROWS = st.lists(
    st.tuples(
        st.none() | st.sampled_from("ab"), st.none() | st.integers(0, 1), st.none() | st.integers(0, 9)
    ),
    max_size=8,
)


def sent(left: list[Any], right: list[Any]) -> pa.Table:
    return ON.sent(table(named(left, LEFT), LEFT), table(named(right, RIGHT), RIGHT), WAY)


def named(rows: list[Any], schema: pa.Schema) -> list[Row]:
    return [dict(zip(schema.names, row, strict=True)) for row in rows]


@examples(40)
@given(ROWS, ROWS, st.integers(0, 9))
def test_every_row_is_left_right_or_late_and_equal_keys_have_equal_numbers(
    left: list[Any], right: list[Any], clock: int
) -> None:
    rows = sent(left, right)
    at = times_of(rows, "at", "since")
    assert at.tolist() == [NEVER if row[2] is None else row[2] for row in left + right]
    made = arrivals(rows, at, at < clock, ON)
    known: dict[Any, tuple[int, int]] = {}
    for arrived, side, schema in ((made.left, left, LEFT), (made.right, right, RIGHT)):
        in_time = [row for row in side if row[2] is not None and row[2] >= clock]
        assert listed(arrived.rows) == named(in_time, schema)
        assert arrived.at.tolist() == [row[2] for row in in_time]
        for row, *key in zip(in_time, *map(list, arrived.keys), strict=True):
            assert (key[1] == NO_KEY) == (None in row[:2])
            if None not in row[:2]:
                assert tuple(key) == known.setdefault(row[:2], tuple(key))
        assert arrived.keyed.tolist() == [None not in row[:2] for row in in_time]
    assert len(set(known.values())) == len(known)
    late = 0 if made.late is None else len(made.late)
    assert late + len(made.left.rows) + len(made.right.rows) == len(rows)


def test_rows_of_the_left_come_first_on_their_way() -> None:
    assert is_left(sent([("a", 1, 5)], [("a", 1, 6)])).tolist() == [True, False]


def test_some_of_the_rows_keep_their_times_and_keys() -> None:
    keys = KeyHashes(np.array([3, 0]), np.array([4, NO_KEY]))
    arrived = Arrived(pa.table({"v": [1, 2]}), np.array([5, 6]), keys)
    assert arrived.only(np.array([True, True])) is arrived
    some = arrived.only(np.array([False, True]))
    assert (some.rows["v"].to_pylist(), some.at.tolist(), some.keys.low.tolist()) == ([2], [6], [NO_KEY])
