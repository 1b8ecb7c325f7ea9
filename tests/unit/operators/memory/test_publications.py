"""How often windows were published, against a counter."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from headwater.operators.event_time import Times
from headwater.operators.groups import Numbers
from headwater.operators.memory.publications import PublicationCounts
from soaking import examples

PAIRS = st.sets(st.tuples(st.integers(-3, 8), st.integers(0, 3)))
EVERY = [(window, key) for window in range(-4, 10) for key in range(5)]


def apart(pairs: list[tuple[int, int]]) -> tuple[Times, Numbers]:
    windows, keys = np.array(pairs, np.int64).reshape(-1, 2).T
    return windows, keys


@examples(50)
@given(st.lists(st.tuples(PAIRS, st.integers(-4, 9)), max_size=8))
def test_a_held_window_has_as_many_publications_as_came_out(
    steps: list[tuple[set[tuple[int, int]], int]],
) -> None:
    counts, oracle = PublicationCounts(counting=True), Counter[tuple[int, int]]()
    last = -9
    for pairs, before in steps:
        pairs, last = {pair for pair in pairs if pair[0] >= last}, max(last, before)
        windows, keys = apart(sorted(pairs))
        counts.publish(windows, keys)
        oracle.update(pairs)
        assert counts.of(*apart(EVERY)).tolist() == [oracle[pair] for pair in EVERY]
        counts.drop(before)
        oracle = Counter({pair: count for pair, count in oracle.items() if pair[0] >= before})
    assert counts.of(*apart(EVERY)).tolist() == [oracle[pair] for pair in EVERY]


def test_where_each_window_is_published_once_nothing_is_held() -> None:
    counts = PublicationCounts(counting=False)
    windows, keys = apart([(0, 1), (5, 2)])
    counts.publish(windows, keys)
    assert len(counts) == 0
    assert counts.of(windows, keys).tolist() == [0, 0]
