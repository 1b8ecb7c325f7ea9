"""Sliding windows against an oracle that looks at all rows for every event."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.operators.event_time import FOREVER, NEVER
from headwater.operators.windows.sliding import Sliding
from soaking import examples
from unit.operators.stepping import (
    SCHEMA,
    TIMED_ROWS,
    Move,
    Row,
    key,
    listed,
    moves,
    play,
    table,
)
from unit.operators.windows.window_oracle import (
    WindowOracle,
    check_any_order,
    check_output_watermark,
    check_revisions,
    woken,
)
from unit.operators.windows.windowed import BY, last, made, named, windowing

IDENTITY = (*BY, "window_start")


def sliding(size: int, late: str = "drop", keep: int = 0) -> Sliding:
    return Sliding(windowing("sliding", late, keep), timedelta(microseconds=size))


def early(size: int, every: int, late: str = "drop", keep: int = 0) -> Sliding:
    return replace(sliding(size, late, keep), every=every)


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


ORACLE = WindowOracle(is_late, expected)


@every_shape
@examples(50)
@given(steps=moves())
def test_any_split_clock_and_restart_gives_what_the_oracle_gives(
    operator: Sliding, steps: list[Move]
) -> None:
    ORACLE.check(operator, steps)


@every_shape
@examples(20)
@given(steps=moves(TIMED_ROWS.map(lambda row: {**row, "k": "a", "x": row["x"] and 0.0})))
def test_after_each_step_all_that_the_clock_has_passed_is_published(
    operator: Sliding, steps: list[Move]
) -> None:
    ORACLE.check_each_step(operator, steps)


@every_shape
@examples(20)
@given(steps=moves())
def test_revisions_count_the_publications_of_a_window(operator: Sliding, steps: list[Move]) -> None:
    check_revisions(operator, steps)


@every_shape
@examples(20)
@given(rows=st.lists(TIMED_ROWS, max_size=30), data=st.data())
def test_neither_order_nor_split_nor_restart_changes_a_byte(
    operator: Sliding, rows: list[Row], data: st.DataObject
) -> None:
    check_any_order(operator, rows, data)


@every_shape
@examples(20)
@given(steps=moves())
def test_what_comes_out_later_is_not_before_the_promise(operator: Sliding, steps: list[Move]) -> None:
    check_output_watermark(operator, steps)


@every_shape
@examples(20)
@given(rows=st.lists(TIMED_ROWS, max_size=20))
def test_woken_whenever_it_asks_it_publishes_all_and_forgets_all(operator: Sliding, rows: list[Row]) -> None:
    state, _ = woken(operator, rows)
    assert len(state.held) == len(state.publications) == 0


@pytest.mark.parametrize("shape", [(1, "drop", 0), (4, "drop", 0), (9, "correct", 3)])
@examples(50)
@given(steps=moves(), every=st.integers(1, 4))
def test_events_that_wait_are_published_each_time_so_many_more_rows_have_come(
    shape: tuple[int, str, int], steps: list[Move], every: int
) -> None:
    operator = early(shape[0], every, *shape[1:])
    used: list[Row] = []
    for move, step in zip(steps, play(operator, steps).steps, strict=True):
        before = list(used)
        used += [row for row in move.rows if not is_late(operator, row, move.clock)]
        passed = {
            (event["at"], key(event, BY)): count
            for event in used
            if event["at"] >= move.clock
            and (count := seen(operator, used, event)) // every > seen(operator, before, event) // every
        }
        shown = [row for row in listed(step.out) if not row["complete"]]
        assert {(row["window_end"], key(row, BY)): row["n"] for row in shown} == passed
    out = [row for row in play(operator, steps).out if row["complete"]]
    assert last(out, IDENTITY) == expected(operator, used, steps[-1].clock)


def seen(operator: Sliding, rows: list[Row], event: Row) -> int:
    """How many rows there are in the window of an event."""
    size = operator.size // timedelta(microseconds=1)
    mine = [row for row in rows if key(row, BY) == key(event, BY)]
    return sum(event["at"] - size < row["at"] <= event["at"] for row in mine)


def row(at: int | None, v: int = 1, k: str = "a") -> Row:
    return {"k": k, "x": None, "v": v, "tags": None, "at": at}


def told(rows: list[Row]) -> list[tuple[int, int, int, int]]:
    return [(r["window_end"], r["n"], r["total"], r["revision"]) for r in rows]


def test_exactly_size_before_is_not_in_the_window() -> None:
    played = play(sliding(5), [Move([row(0), row(4), row(5), row(5, 7, "b")], NEVER), Move([], FOREVER)])
    assert told(played.out) == [(0, 1, 1, 0), (4, 2, 2, 0), (5, 2, 2, 0), (5, 1, 7, 0)]
    assert [r["window_start"] for r in played.out] == [-5, -1, 0, 0]


def test_events_of_one_time_see_each_other_and_make_one_result() -> None:
    steps = [Move([row(3, 1), row(3, 2)], NEVER), Move([row(3, 4)], 3, "snapshot"), Move([], 4)]
    assert told(play(sliding(5), steps).out) == [(3, 3, 7, 0)]


def test_an_event_waits_until_the_clock_is_after_it() -> None:
    operator = sliding(5)
    state = operator.initial_state(SCHEMA)
    operator.step(state, table([row(3)]), NEVER)
    assert operator.next_timer(state) == 4
    assert len(operator.step(state, table([]), 3).out) == 0
    assert len(operator.step(state, table([]), 4).out) == 1
    assert operator.next_timer(state) == 8


def test_an_event_is_shown_at_once_and_then_finished() -> None:
    steps = [Move([row(3)], NEVER), Move([row(1)], 1, "snapshot"), Move([], 9)]
    played = play(early(5, 1), steps)
    assert [(*each, r["complete"]) for each, r in zip(told(played.out), played.out, strict=True)] == [
        (3, 1, 1, 0, False),
        (1, 1, 1, 0, False),
        (3, 2, 2, 1, False),
        (1, 1, 1, 1, True),
        (3, 2, 2, 2, True),
    ]
    assert not early(5, 1).repeatable


def test_a_late_event_tells_how_late_it_is_and_for_which_window() -> None:
    played = play(sliding(5), [Move([row(3), row(None)], 10)])
    assert [(r["late_by"], r["late_window_start"]) for r in played.late] == [(7, -2), (None, None)]


def test_a_late_event_corrects_all_results_that_it_is_in() -> None:
    events = [row(0), row(4), row(6), row(9)]
    steps = [Move(events, NEVER), Move([], 10), Move([row(2)], 12, "chunks")]
    played = play(sliding(5, "correct", 10), steps)
    assert told(played.out[4:]) == [(2, 2, 2, 0), (4, 3, 3, 1), (6, 3, 3, 1)]


def test_the_event_time_out_is_the_end() -> None:
    assert sliding(5).event_time_out == "window_end"
    assert [sliding(5, "correct", 10).output_watermark(clock) for clock in (NEVER, 30)] == [NEVER, 20]
    assert (sliding(5).identity, sliding(5).uncompared_columns) == (IDENTITY, ("revision",))


@pytest.mark.slow
def test_what_no_window_reaches_back_to_is_cleared_away() -> None:
    operator = sliding(5)
    state = operator.initial_state(SCHEMA)
    for at in range(1000):
        operator.step(state, table([row(at), row(at, 1, str(at))]), at)
    assert len(state.held) < 40
