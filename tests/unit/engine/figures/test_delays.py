"""Many lengths of time, counted."""

from __future__ import annotations

import math
from datetime import timedelta

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from headwater.durations import MICROSECOND
from headwater.engine.figures.delays import Delays

lengths = st.lists(
    st.one_of(st.integers(-5, 300), st.integers(0, 1 << 40), st.integers(0, 1 << 52)), min_size=1
)


@given(lengths, st.lists(st.integers(0, 1 << 40), max_size=5), st.integers(0, 100))
def test_what_is_over_a_chosen_length_is_counted_exactly(
    values: list[int], chosen: list[int], cut: int
) -> None:
    delays = Delays(each * MICROSECOND for each in chosen)
    delays.add(np.array(values[:cut], np.int64))
    delays.add(np.array(values[cut:], np.int64))
    assert delays.count == len(values)
    for each in (0, *chosen):
        assert delays.over(each * MICROSECOND) == sum(value > each for value in values)


@given(lengths, st.floats(0.001, 1.0))
def test_a_quantile_is_never_too_low_and_hardly_too_high(values: list[int], share: float) -> None:
    delays = Delays([])
    delays.add(np.array(values, np.int64))
    exact = max(0, sorted(values)[math.ceil(share * len(values)) - 1])
    told = delays.quantile(share) // MICROSECOND
    assert exact <= told <= exact + exact / 128
    assert delays.quantile(1) == delays.largest == max(0, *values) * MICROSECOND


def test_of_nothing_all_is_zero() -> None:
    delays = Delays([timedelta(seconds=1)])
    assert (delays.count, delays.quantile(0.5), delays.largest) == (0, timedelta(), timedelta())
    assert delays.over(timedelta(seconds=1)) == 0


def test_the_longest_that_can_be_is_counted() -> None:
    delays = Delays([])
    delays.add(np.array([(1 << 63) - 1, 1]))
    assert delays.largest == ((1 << 63) - 1) * MICROSECOND
    assert delays.quantile(0.5) == MICROSECOND
