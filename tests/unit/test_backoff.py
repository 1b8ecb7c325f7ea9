"""Waits between attempts."""

from __future__ import annotations

from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.backoff import Backoff


@given(st.integers(1, 10_000), st.floats(0, 1), st.sampled_from([0.0, 0.5, 1.0]))
def test_a_wait_is_within_its_step_and_never_over_the_longest(
    attempt: int, chance: float, jitter: float
) -> None:
    step = min(300.0, 2.0 ** min(attempt - 1, 1000))
    wait = Backoff(1.0, 300.0, jitter, lambda: chance).seconds(attempt)
    assert step * (1 - jitter) <= wait <= step


def test_pauses_grow_up_to_the_longest_and_end_in_time() -> None:
    endless = list(islice(Backoff(0.1, 5.0).pauses(), 12))
    assert endless[0] <= 0.1 and 2.5 <= endless[-1] <= 5.0
    assert list(Backoff(0.1, 5.0, jitter=0.0).pauses(0.05)) == []
    assert list(Backoff(0.1, 5.0, jitter=0.0).pauses(0.15)) == [0.1]


def test_without_jitter_every_wait_is_its_step() -> None:
    assert list(islice(Backoff(0.1, 0.5, jitter=0.0).pauses(), 4)) == pytest.approx([0.1, 0.2, 0.4, 0.5])
