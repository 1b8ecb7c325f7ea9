"""Filters: never a no to a value that was put in, and what they cannot be asked."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.errors import UsageError
from headwater.operators.aggregates.bloom import Bloom, may_contain
from soaking import examples

TEXTS = st.lists(st.text(max_size=4), min_size=1, max_size=20)


def made(bloom: Bloom, values: list[str]) -> bytes:
    (found,) = bloom.over(pa.table({"s": pa.array(values, pa.string())}))
    assert isinstance(found, bytes)
    return found


@examples(20)
@given(TEXTS, TEXTS)
def test_united_filters_are_that_of_all_values_and_know_each(some: list[str], others: list[str]) -> None:
    bloom = Bloom("s", expected=30)
    parts = pa.array([made(bloom, some), made(bloom, others)], pa.binary())
    (both,) = bloom.merge([parts], np.zeros(2, np.int64), 1)
    assert both.to_pylist() == [made(bloom, [*others, *some])]
    assert all(may_contain(both.to_pylist()[0], [*some, *others]))


def test_a_filter_is_as_large_as_what_is_expected_and_errs_as_seldom_as_it_may() -> None:
    inside, outside = [f"in {n}" for n in range(500)], [f"out {n}" for n in range(5000)]
    for error, most in ((0.1, 750), (0.001, 25)):
        assert sum(may_contain(made(Bloom("s", 500, error), inside), outside)) < most
    assert len(made(Bloom("s", 1000), ["a"])) == pytest.approx(
        2 * len(made(Bloom("s", 500), ["a"])), rel=0.05
    )


def test_values_are_asked_for_in_the_type_of_the_column_whatever_its_width() -> None:
    (found,) = Bloom("n", expected=50).over(pa.table({"n": pa.array([1, 2, -3], pa.int16())}))
    assert may_contain(found, [1, 2, -3]) == [True] * 3
    assert may_contain(found, pa.array([1, 2, -3], pa.int64())) == [True] * 3
    (found,) = Bloom("x", expected=50).over(pa.table({"x": [0.0, float("nan")]}))
    assert may_contain(found, [-0.0, float("nan"), 1.0]) == [True, True, False]


def test_nothing_asked_is_nothing_told() -> None:
    assert may_contain(made(Bloom("s"), ["a"]), pa.array([], pa.string())) == []
    assert may_contain(made(Bloom("s"), ["a"]), []) == []


@pytest.mark.parametrize("values", [["a", None], [Decimal("1.5")], [["a"]]])
def test_a_filter_is_not_asked_for_nulls_or_for_what_has_no_hash(values: list[object]) -> None:
    with pytest.raises(UsageError, match="a filter cannot be asked for such values"):
        may_contain(made(Bloom("s"), ["a"]), values)


def test_a_filter_of_what_has_no_hash_is_refused() -> None:
    with pytest.raises(UsageError, match='bloom cannot take column "d"'):
        Bloom("d").output("seen", pa.schema([("d", pa.decimal128(9, 2))]))
