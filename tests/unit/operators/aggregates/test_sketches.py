"""Sketches: exact while they hold all values, within their error beyond, and null of nothing."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.operators.aggregates.sketches import ApproxDistinct, Quantile, united
from soaking import examples

NUMBERS = st.lists(st.integers(0, 30), max_size=20)


def sketch(aggregate: ApproxDistinct | Quantile, values: list[int]) -> pa.Array:
    rows = pa.table({"n": pa.array(values, pa.int64())})
    at = np.zeros(len(values), np.int64)
    (made,) = aggregate.partial(rows, at, at, 1)
    return made


@examples(40)
@given(NUMBERS, NUMBERS)
def test_a_distinct_count_depends_on_the_values_alone(some: list[int], more: list[int]) -> None:
    count = ApproxDistinct("n", bounds=True)
    parts = pa.concat_arrays([sketch(count, some), sketch(count, more)])
    merged = count.merge([parts], np.zeros(2, np.int64), 1)
    told = [column.to_pylist()[0] for column in count.finish(merged)]
    assert told == [column.to_pylist()[0] for column in count.finish([sketch(count, more + some)])]
    assert told[0] == len({*some, *more})
    assert told[1] <= told[0] <= told[2]


@examples(40)
@given(NUMBERS.filter(bool), st.sampled_from([0.0, 0.3, 0.5, 1.0]))
def test_a_quantile_of_few_values_is_one_of_them_and_the_right_one(values: list[int], q: float) -> None:
    (told,) = Quantile("n", q).over(pa.table({"n": values}))
    assert told == sorted(values)[max(math.ceil(round(q * len(values), 6)), 1) - 1]


def test_sketches_are_united_by_group_and_a_single_one_stays_as_it_is() -> None:
    parts = pa.array([b"a", None, b"b", b"c", None], pa.binary())
    groups = np.array([0, 0, 2, 0, 1])
    assert list(united(parts, groups, 4, b"+".join)) == [b"a+c", None, b"b", None]


def test_nan_counts_as_null_for_a_quantile_and_zero_has_no_sign() -> None:
    rows = pa.table({"n": [math.nan, -0.0, None]})
    (told,) = Quantile("n", 0.5).over(rows)
    assert math.copysign(1, told) == 1.0
    assert Quantile("n", 0.5).over(rows.slice(0, 1)) == [None]


def test_a_smaller_error_makes_a_larger_sketch() -> None:
    values = list(range(3000))
    for rough, fine in (
        (ApproxDistinct("n", 0.1), ApproxDistinct("n", 0.02)),
        (Quantile("n", 0.5, 0.1), Quantile("n", 0.5, 0.01)),
    ):
        assert len(sketch(rough, values)[0].as_py()) < len(sketch(fine, values)[0].as_py())


@pytest.mark.parametrize("error", [0.05, 0.02])
def test_many_values_are_told_within_the_error(error: float) -> None:
    rows = pa.table({"n": np.arange(5000)})
    estimate, low, high = ApproxDistinct("n", error, bounds=True).over(rows)
    assert low <= estimate <= high
    assert abs(estimate - 5000) < 4 * error * 5000
    (middle,) = Quantile("n", 0.5, error).over(rows)
    assert abs(middle - 2500) < 3 * error * 5000
