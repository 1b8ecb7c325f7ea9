"""Marks of rows against a dict."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from headwater.operators.memory.match_marks import MarkedRows, MatchMarks
from headwater.operators.memory.sorted_runs import Limits
from soaking import examples
from unit.operators.stepping import LOGGED, SPILLED, TablesInMemory


def rows(some: list[tuple[int, int]]) -> MarkedRows:
    """Rows by time and number; the first half of the key is the number, times ten."""
    at, number = (np.array([each[place] for each in some], np.int64) for place in range(2))
    return MarkedRows(10 * number, at, number)


def restarted(marks: MatchMarks, limits: Limits, files: TablesInMemory) -> MatchMarks:
    again = MatchMarks()
    again.runs.open(marks.runs.save(files, limits), files)
    return again


@examples(80)
@given(
    st.lists(
        st.tuples(
            st.lists(st.integers(0, 9), max_size=5),
            st.sets(st.integers(0, 30), max_size=5),
            st.integers(0, 9),
            st.sampled_from([None, LOGGED, SPILLED]),
        ),
        max_size=6,
    )
)
def test_rows_without_a_match_are_those_that_were_never_marked(steps: list[Any]) -> None:
    files = TablesInMemory()
    marks, held, added, floor = MatchMarks(), dict[int, tuple[int, bool]](), 0, 0
    for new, met, before, limits in steps:
        fresh = [(max(at, floor), added + place) for place, at in enumerate(new)]
        added += len(new)
        marks.mark(rows(fresh), np.zeros(len(fresh), np.bool_))
        held |= {number: (at, False) for at, number in fresh}
        known = [(held[number][0], number) for number in sorted(met & set(held))]
        marks.mark(rows(known), np.ones(len(known), np.bool_))
        held |= {number: (at, True) for at, number in known}
        alone = marks.unmatched(before)
        assert alone.numbers.tolist() == [n for n, (at, met) in held.items() if at < before and not met]
        assert alone.high.tolist() == [10 * number for number in alone.numbers.tolist()]
        assert alone.at.tolist() == [held[number][0] for number in alone.numbers.tolist()]
        floor = max(floor, before)
        marks.drop(floor)
        held = {number: (at, met) for number, (at, met) in held.items() if at >= floor}
        assert marks.first() == min((at for at, _ in held.values()), default=None)
        marks = marks if limits is None else restarted(marks, limits, files)
    told = [(at, number) for number, (at, _) in held.items()] + [(floor, 999)]
    assert marks.matched(rows(told)).tolist() == [*(met for _, met in held.values()), False]
