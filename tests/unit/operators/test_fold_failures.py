"""Which events a fold fails on, against a loop over them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.operators.fold import KNOWN, Folding
from headwater.operators.fold_failures import MOST, split_failing_events
from headwater.operators.groups import Numbers
from headwater.operators.operator import ERROR
from soaking import examples

STATE = pa.schema([("total", pa.int64())])
MOST_OF_ALL = 10
EVENTS = st.lists(st.tuples(st.integers(0, 2), st.integers(-2, 6)), max_size=20)


@dataclass(frozen=True)
class Ripe:
    events: pa.Table
    groups: Numbers


def add(state: dict[str, Any] | None, event: dict[str, Any]) -> dict[str, Any]:
    """Add values, none of them negative, up to a most."""
    total = (state["total"] if state else 0) + event["v"]
    if event["v"] < 0:
        raise ValueError(f"{event['v']} is negative")
    if total > MOST_OF_ALL:
        raise OverflowError("too much")
    return {"total": total}


def before(totals: list[int | None]) -> pa.Table:
    states = pa.table({"total": totals}, schema=STATE)
    return states.append_column(KNOWN, pa.array([total is not None for total in totals]))


def ripe(events: list[tuple[int, int]]) -> Ripe:
    groups = np.array([group for group, _ in events], np.int64)
    return Ripe(pa.table({"v": pa.array([v for _, v in events], pa.int64())}), groups)


def by_hand(totals: list[int | None], events: list[tuple[int, int]]) -> list[int]:
    """Return the places of the events that can be added, one after the other."""
    now, good = [total or 0 for total in totals], []
    for place, (group, v) in enumerate(events):
        if v >= 0 and now[group] + v <= MOST_OF_ALL:
            now[group] += v
            good.append(place)
    return good


@examples(30)
@given(EVENTS, st.lists(st.none() | st.integers(0, 9), min_size=3, max_size=3))
def test_what_is_left_is_folded_as_if_the_others_had_not_come(
    events: list[tuple[int, int]], totals: list[int | None]
) -> None:
    good, dead = split_failing_events(Folding(add, STATE).rows, before(totals), ripe(events))
    expected = by_hand(totals, events)
    assert good.tolist() == expected
    rest = [v for place, (_, v) in enumerate(events) if place not in expected]
    assert dead["v"].to_pylist() == rest
    said = [f"ValueError: {v} is negative" if v < 0 else "OverflowError: too much" for v in rest]
    assert dead[ERROR].to_pylist() == said


def test_a_fold_that_fails_on_more_than_a_few_is_wrong_itself() -> None:
    folding = Folding(add, STATE)
    good, dead = split_failing_events(folding.rows, before([None]), ripe([(0, -1)] * MOST))
    assert (len(good), len(dead)) == (0, MOST)
    with pytest.raises(ValueError, match="-1 is negative"):
        split_failing_events(folding.rows, before([None]), ripe([(0, -1)] * (MOST + 1)))


def test_no_events_are_none_that_fail() -> None:
    good, dead = split_failing_events(Folding(add, STATE).rows, before([]), ripe([]))
    assert len(good) == 0
    assert dead.column_names == ["v", ERROR]
