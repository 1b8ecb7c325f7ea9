from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from headwater.operators.order import order, stable
from soaking import examples
from unit.operators.stepping import ROWS, Row, listed, rank, table, texts

INT64 = st.integers(-(2**63), 2**63 - 1)


@examples(100)
@given(st.lists(st.tuples(st.integers(0, 2), ROWS)), st.randoms())
def test_rows_are_ordered_by_the_leads_and_then_by_all_columns(some: list[tuple[int, Row]], random) -> None:  # type: ignore[no-untyped-def]
    expected = [row for _, row in sorted(some, key=lambda each: (each[0], rank(each[1])))]
    random.shuffle(some)
    rows = table(row for _, row in some)
    places = order(rows, np.array([lead for lead, _ in some], np.int64))
    assert texts(listed(rows.take(pa.array(places)))) == texts(expected)


@given(st.lists(st.tuples(st.sampled_from([0, 1, 2**40]), INT64)))
def test_the_first_lead_counts_most(pairs: list[tuple[int, int]]) -> None:
    majors = np.array(pairs, np.int64).reshape(-1, 2)
    rows = pa.table({"n": pa.array(range(len(pairs)))})
    assert [pairs[place] for place in order(rows, majors[:, 0], majors[:, 1])] == sorted(pairs)


@given(st.lists(st.integers(0, 5) | INT64))
def test_equal_numbers_stay_in_their_order(numbers: list[int]) -> None:
    places = stable(np.array(numbers, np.int64))
    assert places.tolist() == sorted(range(len(numbers)), key=numbers.__getitem__)


@given(st.lists(st.floats(allow_nan=False)))
def test_floats_are_ordered_and_zero_has_a_sign(floats: list[float]) -> None:
    places = order(pa.table({"x": pa.array(floats, pa.float64())}), np.zeros(len(floats), np.int64))
    expected = sorted(floats, key=lambda x: (x, math.copysign(1, x)))
    assert [repr(floats[place]) for place in places] == [repr(x) for x in expected]
