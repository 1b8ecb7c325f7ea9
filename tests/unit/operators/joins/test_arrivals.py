"""Rows of two inputs on their way, parted again against a loop over them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from headwater.operators.event_time import NEVER
from headwater.operators.joins.arrivals import Arrived, arrivals, is_left, slots_of, times_of
from headwater.operators.memory.numbered_rows import NOWHERE
from headwater.operators.memory.rows_by_key_and_time import KeySlots
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
    made = arrivals(rows, at, at < clock, ON, KeySlots())
    known: dict[Any, int] = {}
    for arrived, side, schema in ((made.left, left, LEFT), (made.right, right, RIGHT)):
        in_time = [row for row in side if row[2] is not None and row[2] >= clock]
        assert listed(arrived.rows) == named(in_time, schema)
        assert arrived.at.tolist() == [row[2] for row in in_time]
        for row, slot in zip(in_time, arrived.slots.tolist(), strict=True):
            assert slot == (NOWHERE if None in row[:2] else known.setdefault(row[:2], slot))
    assert len(set(known.values())) == len(known)
    late = 0 if made.late is None else len(made.late)
    assert late + len(made.left.rows) + len(made.right.rows) == len(rows)


def test_without_slots_no_key_has_a_number() -> None:
    rows = sent([("a", 1, 5)], [("a", 1, 6)])
    made = arrivals(rows, times_of(rows, "at", "since"), np.zeros(2, np.bool_), ON, None)
    assert (made.left.slots.tolist(), made.right.slots.tolist()) == ([NOWHERE], [NOWHERE])
    assert made.late is None


def test_the_keys_of_one_side_have_the_numbers_that_they_have_on_their_way() -> None:
    slots = KeySlots()
    rows = sent([("a", 1, 5), ("b", 1, 5)], [])
    arrivals(rows, times_of(rows, "at", "since"), np.zeros(2, np.bool_), ON, slots)
    right = table(named([("b", 1, 0), ("a", 1, 0), ("a", None, 0), ("c", 1, 0)], RIGHT), RIGHT)
    types = [WAY.field(name).type for name in ON.key]
    assert slots_of(right, ["key", "m"], types, slots.find).tolist() == [1, 0, NOWHERE, NOWHERE]


def test_rows_of_the_left_come_first_on_their_way() -> None:
    assert is_left(sent([("a", 1, 5)], [("a", 1, 6)])).tolist() == [True, False]


def test_some_of_the_rows_keep_their_times_and_numbers() -> None:
    arrived = Arrived(pa.table({"v": [1, 2]}), np.array([5, 6]), np.array([0, NOWHERE]))
    assert arrived.only(np.array([True, True])) is arrived
    some = arrived.only(np.array([False, True]))
    assert (some.rows["v"].to_pylist(), some.at.tolist(), some.slots.tolist()) == ([2], [6], [NOWHERE])
