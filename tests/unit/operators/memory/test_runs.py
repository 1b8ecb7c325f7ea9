"""Numbers of rows by key and time against a list that is gone through from end to end."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from headwater.operators.event_time import FOREVER, NEVER
from headwater.operators.memory.runs import Runs
from soaking import examples

ROWS = st.lists(st.tuples(st.integers(0, 5), st.integers(-4, 9)), max_size=12)
SPANS = st.lists(st.tuples(st.integers(0, 7), st.integers(-6, 11), st.integers(-6, 11)), max_size=8)


def columns(rows: list[Any], width: int) -> list[Any]:
    return [np.array([row[place] for row in rows], np.int64) for place in range(width)]


def filled(steps: list[Any]) -> Runs:
    runs, start = Runs(), 0
    for rows in steps:
        runs.add(*columns(rows, 2), np.arange(start, start + len(rows)))
        start += len(rows)
    return runs


def matches(runs: Runs, spans: list[Any]) -> list[tuple[int, int]]:
    return list(zip(*map(np.ndarray.tolist, runs.find(*columns(spans, 3))), strict=True))


@examples(100)
@given(st.lists(ROWS, max_size=6), SPANS)
def test_runs_find_what_lies_in_a_span_in_the_order_of_arrival(steps: list[Any], spans: list[Any]) -> None:
    runs, known = filled(steps), [row for rows in steps for row in rows]
    asked, least, most = columns(spans, 3)
    told = [
        (place, number)
        for place, (slot, low, high) in enumerate(spans)
        for number, (mine, at) in enumerate(known)
        if mine == slot and low <= at <= high
    ]
    assert matches(runs, spans) == told
    some = {place for place, _ in told}
    assert runs.any(asked, least, most).tolist() == [place in some for place in range(len(spans))]
    older = [[at for mine, at in known if mine == slot and at <= low] for slot, low, _ in spans]
    later = [[at for mine, at in known if mine == slot and at > low] for slot, low, _ in spans]
    assert runs.newest(asked, least).tolist() == [max(times, default=NEVER) for times in older]
    assert runs.next(asked, least).tolist() == [min(times, default=FOREVER) for times in later]


@examples(50)
@given(st.lists(ROWS, max_size=6), st.sets(st.integers(0, 71)), SPANS)
def test_rows_that_are_kept_are_found_by_their_new_numbers(
    steps: list[Any], left_out: set[int], spans: list[Any]
) -> None:
    runs, known = filled(steps), [row for rows in steps for row in rows]
    kept = np.array([number not in left_out for number in range(len(known))], np.bool_)
    runs.keep(kept, np.cumsum(kept) - 1)
    rest = [row for row, keeps in zip(known, kept, strict=True) if keeps]
    assert sorted(zip(*map(np.ndarray.tolist, runs.all()), strict=True)) == sorted(
        (slot, at, number) for number, (slot, at) in enumerate(rest)
    )
    assert matches(runs, spans) == matches(filled([rest]), spans)


def test_keys_with_new_numbers_are_found_by_those() -> None:
    runs = filled([[(2, 5), (4, 6)], [(2, 1)]])
    runs.rekey(np.array([-1, -1, 0, -1, 1]))
    assert matches(runs, [(0, 0, 9), (1, 0, 9), (2, 0, 9)]) == [(0, 0), (0, 2), (1, 1)]


def test_where_nothing_was_added_nothing_is_found() -> None:
    runs, asked = Runs(), np.array([0, 1])
    assert matches(runs, [(0, -9, 9)]) == []
    assert runs.any(asked, asked, asked).tolist() == [False, False]
    assert runs.newest(asked, asked).tolist() == [NEVER, NEVER]
    assert runs.next(asked, asked).tolist() == [FOREVER, FOREVER]
    assert len(runs.all().slot) == 0
