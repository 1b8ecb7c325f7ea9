"""When open sessions are shown, and with which of their rows."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from headwater import agg
from headwater.operators.aggregates.last_time import LastTime
from headwater.operators.aggregates.row_count import RowCount
from headwater.operators.event_time import NEVER
from headwater.operators.memory.entries import Entries
from headwater.operators.windows.early import Early
from headwater.operators.windows.session_state import with_status
from headwater.operators.windows.windowing import Windowing
from soaking import examples

TIMED, ROWS, OFF = Early(timedelta(microseconds=10)), Early(3), Early(None)


def sessions(*given: tuple[int, int, int]) -> Entries:
    """Return sessions of one key: start, end, and what is held beside the aggregates."""
    start, end, beside = np.array(given, np.int64).reshape(-1, 3).T
    rows = with_status(pa.table({"n.beside": beside}), end, end * 0, np.zeros(len(end), np.bool_))
    return Entries(start * 0, start, rows)


@examples(60)
@given(st.lists(st.integers(-50, 50), min_size=1, max_size=10), st.integers(-50, 50), st.integers(1, 12))
def test_events_are_apart_where_a_time_to_publish_that_is_to_come_lies_between(
    at: list[int], clock: int, every: int
) -> None:
    early = Early(timedelta(microseconds=every))
    passed = clock - clock % every
    assert early.passed(clock) == passed
    at = sorted(at)
    slots = early.slots(np.array(at), clock).tolist()
    coming = range(passed, 100)
    for one, other, a, b in zip(at, at[1:], slots, slots[1:], strict=False):
        between = any(time % every == 0 and one < time <= other for time in coming)
        assert (a < b) == between
        assert a <= b
    assert all(one < early.following(one) <= one + every for one in at)


def test_what_is_held_beside_the_aggregates_is_what_early_results_need() -> None:
    plain = Windowing("session", (), "at", (("n", agg.count()),))
    assert OFF.held(plain) == plain
    assert isinstance(TIMED.held(plain).aggregates[-1][1], LastTime)
    assert isinstance(ROWS.held(plain).aggregates[-1][1], RowCount)


def test_a_session_is_shown_when_the_clock_has_passed_a_multiple_after_its_start() -> None:
    some = sessions((5, 90, 80), (10, 90, 80), (20, 90, 80))
    assert TIMED.shown(some, 19).tolist() == [True, False, False]
    assert TIMED.shown(some, 20).tolist() == [True, True, False]
    assert TIMED.shown(some, NEVER).tolist() == [False] * 3
    assert OFF.shown(some, 1000).tolist() == [False] * 3


def test_a_session_is_shown_when_it_has_so_many_rows() -> None:
    assert ROWS.shown(sessions((0, 9, 2), (0, 9, 3), (0, 9, 7)), NEVER).tolist() == [False, True, True]


def test_an_open_session_is_told_to_end_after_the_rows_that_are_shown() -> None:
    some = sessions((0, 30, 7), (0, 40, 7))
    assert TIMED.until(some, 30, gap=5).tolist() == [30, 12]
    assert ROWS.until(some, 30, gap=5).tolist() == [30, 40]


def test_there_is_more_to_show_where_a_piece_has_come_due_or_a_multiple_of_rows_was_passed() -> None:
    parts, session = sessions((5, 90, 6), (12, 90, 13), (25, 90, 26)), np.array([0, 0, 1])
    old = np.zeros(3, np.bool_)
    assert TIMED.grown(parts, old, session, before=10, watermark=20).tolist() == [True, False]
    assert TIMED.grown(parts, old, session, before=20, watermark=29).tolist() == [False, False]
    assert TIMED.grown(parts, ~old, session, before=30, watermark=30).tolist() == [True, True]
    few, of_two = sessions((0, 9, 2), (0, 9, 1), (0, 9, 4), (0, 9, 1)), np.array([0, 0, 1, 1])
    new = np.array([False, True, False, True])
    assert ROWS.grown(few, new, of_two, NEVER, NEVER).tolist() == [True, False]
    assert len(TIMED.grown(sessions(), old[:0], session[:0], 0, 9)) == 0


def test_a_clock_that_knows_no_time_has_passed_none() -> None:
    assert TIMED.passed(NEVER) == NEVER
    assert (OFF.passed(50), OFF.period, OFF.crowd) == (NEVER, 0, 0)
    assert (TIMED.period, TIMED.crowd, ROWS.period, ROWS.crowd) == (10, 0, 0, 3)
