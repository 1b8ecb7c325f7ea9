"""A run of several parts is found in as one of a single part is."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from headwater.operators.memory.entries import Entries
from headwater.operators.memory.run import Run, positions
from soaking import examples

NUMBERS = st.integers(-4, 4)


def run(pairs: list[tuple[int, int]], cuts: list[int]) -> Run:
    """Return sorted pairs as a run of parts; each row tells its position."""
    major, minor = (np.array([pair[place] for pair in pairs], np.int64) for place in range(2))
    whole = Entries(major, minor, pa.table({"n": pa.array(range(len(pairs)), pa.int64())}))
    edges = sorted({0, len(pairs), *(cut % (len(pairs) + 1) for cut in cuts)})
    return Run(tuple(whole.slice(low, high) for low, high in pairwise(edges)))


@examples(150)
@given(
    st.sets(st.tuples(NUMBERS, NUMBERS), min_size=1),
    st.lists(st.integers(0, 99), max_size=4),
    st.lists(st.tuples(NUMBERS, NUMBERS)),
    st.tuples(NUMBERS, NUMBERS),
    st.tuples(NUMBERS, NUMBERS),
)
def test_what_is_found_does_not_depend_on_the_parts(
    pairs: set[tuple[int, int]],
    cuts: list[int],
    asked: list[tuple[int, int]],
    low: tuple[int, int],
    high: tuple[int, int],
) -> None:
    listed = sorted(pairs)
    made = run(listed, cuts)
    asked = sorted(asked)
    major, minor = (np.array([pair[place] for pair in asked], np.int64) for place in range(2))
    found = {}
    for part, start, end in made.asked(major):
        for nth, place in enumerate(positions(part, major[start:end], minor[start:end]).tolist(), start):
            found |= {asked[nth]: part.rows["n"][place].as_py()} if place >= 0 else {}
    assert found == {pair: listed.index(pair) for pair in asked if pair in pairs}
    between = [n for piece in made.between(low[0], high[0]) for n in piece.rows["n"].to_pylist()]
    assert between == [n for n, pair in enumerate(listed) if low[0] <= pair[0] < high[0]]
    assert made.count(low[0], high[0]) == len(between)
    sliced = [n for piece in made.slice(low, high) for n in piece.rows["n"].to_pylist()]
    assert sliced == [n for n, pair in enumerate(listed) if low <= pair < high]
    assert sum(map(len, made.slice(None, None))) == len(made) == len(listed)
    assert (made.first, made.last) == (listed[0][0], listed[-1][0])
