"""How often windows were published, against a counter."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from headwater.operators.event_time import Times
from headwater.operators.groups import Numbers
from headwater.operators.memory.publications import PublicationCounts
from soaking import examples

KEY = [pa.field("k", pa.string())]
PAIRS = st.sets(st.tuples(st.integers(-3, 8), st.integers(0, 3)))
EVERY = [(window, key) for window in range(-4, 10) for key in range(5)]


def apart(pairs: list[tuple[int, int]]) -> tuple[Times, Numbers]:
    windows, keys = np.array(pairs, np.int64).reshape(-1, 2).T
    return windows, keys


def rows(keys: Numbers) -> pa.Table:
    """Return rows that begin with their keys, as partial results do."""
    named = pa.array([f"k{key}" for key in keys.tolist()], pa.string())
    return pa.table({"k": named, "n.count": keys})


@examples(50)
@given(st.lists(st.tuples(PAIRS, st.integers(-4, 9)), max_size=8))
def test_a_held_window_has_as_many_publications_as_came_out(
    steps: list[tuple[set[tuple[int, int]], int]],
) -> None:
    counts, oracle = PublicationCounts(KEY, counting=True), Counter[tuple[int, int]]()
    for pairs, before in steps:
        windows, keys = apart(sorted(pairs))
        counts.publish(windows, keys, rows(keys))
        oracle.update(pairs)
        assert counts.of(*apart(EVERY)).tolist() == [oracle[pair] for pair in EVERY]
        counts.drop(before)
        oracle = Counter({pair: count for pair, count in oracle.items() if pair[0] >= before})
    assert counts.of(*apart(EVERY)).tolist() == [oracle[pair] for pair in EVERY]


@examples(50)
@given(st.lists(PAIRS, max_size=6))
def test_the_entries_it_returns_make_the_same_counts_elsewhere(steps: list[set[tuple[int, int]]]) -> None:
    counts, by_step, at_once = (PublicationCounts(KEY, counting=True) for _ in range(3))
    for pairs in steps:
        windows, keys = apart(sorted(pairs))
        by_step.add(counts.publish(windows, keys, rows(keys)))
    at_once.add(counts.all())
    told = counts.of(*apart(EVERY)).tolist()
    assert by_step.of(*apart(EVERY)).tolist() == told
    assert at_once.of(*apart(EVERY)).tolist() == told
    assert [f"k{key}" for key in counts.all().minor.tolist()] == counts.all().rows["k"].to_pylist()


def test_where_each_window_is_published_once_nothing_is_held() -> None:
    counts = PublicationCounts(KEY, counting=False)
    windows, keys = apart([(0, 1), (5, 2)])
    made = counts.publish(windows, keys, rows(keys))
    assert (len(made), len(counts)) == (0, 0)
    assert counts.of(windows, keys).tolist() == [0, 0]
