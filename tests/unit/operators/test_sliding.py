"""Sliding windows against an oracle that looks at all rows for every event."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.operators.operator import FOREVER, NEVER
from headwater.operators.sliding import Sliding
from unit.operators.stepping import (
    SCHEMA,
    TIMED_ROWS,
    Move,
    Row,
    key,
    listed,
    moves,
    play,
    splits,
    table,
    texts,
)
from unit.operators.windowed import BY, batch, last, made, named, windowing, without_late

IDENTITY = (*BY, "window_start")


def sliding(size: int, late: str = "drop", keep: int = 0) -> Sliding:
    return Sliding(windowing("sliding", late, keep), timedelta(microseconds=size))


SHAPES = [sliding(1), sliding(4), sliding(30), sliding(4, "correct", 6), sliding(9, "correct", 3)]
every_shape = pytest.mark.parametrize(
    "operator", SHAPES, ids=lambda o: f"{o.size.microseconds}-{o.windowing.late}"
)


def is_late(operator: Sliding, row: Row, clock: int) -> bool:
    return row["at"] is None or row["at"] < clock - operator.windowing.keep // timedelta(microseconds=1)


def expected(operator: Sliding, used: list[Row], clock: int) -> list[str]:
    size = operator.size // timedelta(microseconds=1)
    out = {}
    for event in used:
        mine = [row for row in used if key(row, BY) == key(event, BY)]
        rows = [row for row in mine if event["at"] - size < row["at"] <= event["at"]]
        edges = {"window_start": event["at"] - size, "window_end": event["at"]}
        if event["at"] < clock:
            out[key(event, (*BY, "at"))] = named(event) | edges | made(rows) | {"complete": True}
    return sorted(map(repr, out.values()))


@every_shape
@settings(max_examples=150, deadline=None)
@given(steps=moves())
def test_any_split_clock_and_restart_gives_what_the_oracle_gives(
    operator: Sliding, steps: list[Move]
) -> None:
    played, used, late = play(operator, steps), [], []
    for move in steps:
        for row in move.rows:
            (late if is_late(operator, row, move.clock) else used).append(row)
    assert texts(without_late(played.late)) == texts(late)
    assert last(played.out, IDENTITY) == expected(operator, used, steps[-1].clock)
    assert last(batch(operator, used, steps[-1].clock), IDENTITY) == last(played.out, IDENTITY)


@every_shape
@settings(max_examples=60, deadline=None)
@given(steps=moves(TIMED_ROWS.map(lambda row: {**row, "k": "a", "x": row["x"] and 0.0})))
def test_after_each_step_all_that_the_clock_has_passed_is_published(
    operator: Sliding, steps: list[Move]
) -> None:
    used: list[Row] = []
    for count, move in enumerate(steps, 1):
        used += [row for row in move.rows if not is_late(operator, row, move.clock)]
        played = play(operator, steps[:count])
        assert last(played.out, IDENTITY) == expected(operator, used, move.clock)


@every_shape
@settings(max_examples=100, deadline=None)
@given(steps=moves())
def test_revisions_count_the_publications_of_a_window(operator: Sliding, steps: list[Move]) -> None:
    counts: dict[object, int] = {}
    for row in play(operator, steps).out:
        assert row["revision"] == counts.get(key(row, IDENTITY), 0)
        counts[key(row, IDENTITY)] = row["revision"] + 1
    if not operator.windowing.corrects:
        assert set(counts.values()) <= {1}


@every_shape
@settings(max_examples=60, deadline=None)
@given(rows=st.lists(TIMED_ROWS, max_size=30), data=st.data())
def test_neither_order_nor_split_nor_restart_changes_a_byte(
    operator: Sliding, rows: list[Row], data: st.DataObject
) -> None:
    some, others = data.draw(splits(rows)), data.draw(splits(rows))
    outs = [play(operator, [*steps, Move([], 23), Move([], FOREVER)]).out for steps in (some, others)]
    assert texts(outs[0]) == texts(outs[1])


@every_shape
@settings(max_examples=60, deadline=None)
@given(steps=moves())
def test_what_comes_out_later_is_not_before_the_promise(operator: Sliding, steps: list[Move]) -> None:
    promise = NEVER
    for move, step in zip(steps, play(operator, steps).steps, strict=True):
        assert all(row["window_end"] >= promise for row in listed(step.out))
        promise = operator.promise(move.clock)


@every_shape
@settings(max_examples=60, deadline=None)
@given(rows=st.lists(TIMED_ROWS, max_size=20))
def test_woken_whenever_it_asks_it_publishes_all_and_forgets_all(operator: Sliding, rows: list[Row]) -> None:
    state = operator.begin(SCHEMA)
    operator.step(state, table(rows), NEVER)
    while (wake := operator.wake(state)) is not None:
        operator.step(state, table([]), wake)
    assert len(state.held) == len(state.ledger) == 0
