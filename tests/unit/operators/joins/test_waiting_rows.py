"""Rows that wait, against lists that are gone through."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from headwater.operators.joins.arrivals import Arrived
from headwater.operators.joins.waiting_rows import WaitingRows, any_within
from headwater.operators.memory.key_hash import NO_KEY, KeyHashes
from soaking import examples

SCHEMA = pa.schema([("id", pa.int64())])
KEYS = st.sampled_from([(0, 1), (0, 2), (1, 1), (0, NO_KEY)])
ROWS = st.lists(st.tuples(KEYS, st.integers(0, 12)), max_size=10)
Row = tuple[tuple[int, int], int]


def keys(some: list[Any]) -> KeyHashes:
    return KeyHashes(*(np.array([key[place] for key in some], np.int64) for place in range(2)))


def arrived(rows: list[Row]) -> Arrived:
    table = pa.table([list(range(len(rows)))], schema=SCHEMA)
    return Arrived(table, np.array([at for _, at in rows], np.int64), keys([key for key, _ in rows]))


def note(waiting: WaitingRows, rows: list[Row], matched: list[bool]) -> None:
    nothing = waiting.rows.near(keys([]), np.empty(0, np.int64), np.empty(0, np.int64))
    waiting.note(waiting.add(arrived(rows)), np.array(matched, np.bool_), nothing)


def match(one: Row, other: Row) -> bool:
    """Whether the other is from 2 before the one to 3 after it."""
    return one[0] == other[0] and one[0][1] != NO_KEY and -2 <= other[1] - one[1] <= 3


@examples(80)
@given(ROWS, ROWS, ROWS)
def test_rows_that_meet_others_are_told_once_each(held: list[Row], new: list[Row], more: list[Row]) -> None:
    waiting = WaitingRows(SCHEMA, alone=False, once=True)
    new_rows = waiting.add(arrived(held))
    told = {n for n, one in enumerate(held) if any(match(one, other) for other in new)}
    found = waiting.meeting(arrived(new), 2, 3)
    assert waiting.take(found)["id"].to_pylist() == sorted(told)
    waiting.note(new_rows, np.zeros(len(held), np.bool_), found)
    again = {n for n, one in enumerate(held) if any(match(one, other) for other in more)}
    assert waiting.take(waiting.meeting(arrived(more), 2, 3))["id"].to_pylist() == sorted(again - told)
    assert waiting.meets(arrived(new), 3, 2).tolist() == [any(match(h, n) for h in held) for n in new]


@examples(60)
@given(ROWS, st.lists(st.booleans(), min_size=10, max_size=10), st.integers(0, 14))
def test_rows_without_a_match_are_due_when_their_time_is_over(
    held: list[Row], matched: list[bool], before: int
) -> None:
    waiting = WaitingRows(SCHEMA, alone=True)
    note(waiting, held, matched[: len(held)])
    alone = [n for n, (_, at) in enumerate(held) if at < before and not matched[n]]
    assert waiting.due(before)["id"].to_pylist() == alone
    waiting.drop(before)
    assert len(waiting.rows.runs.all()) == sum(at >= before for _, at in held)
    timer = waiting.next_timer(5)
    assert (timer is None) == all(at < before for _, at in held)
    assert timer is None or timer > before + 5


def test_a_side_of_which_nothing_comes_out_alone_has_no_marks() -> None:
    waiting = WaitingRows(SCHEMA, alone=False)
    note(waiting, [((0, 1), 3)], [False])
    assert (len(waiting), len(waiting.marks), len(waiting.due(9))) == (1, 0, 0)
    assert list(waiting.containers) == ["rows"]


@examples(80)
@given(ROWS, st.lists(st.tuples(KEYS, st.integers(0, 12), st.integers(0, 12)), max_size=8))
def test_whether_any_row_is_within_a_span(rows: list[Row], asked: list[Any]) -> None:
    first, last = (np.array([each[place] for each in asked], np.int64) for place in (1, 2))
    held = arrived(rows)
    found = any_within(keys([each[0] for each in asked]), first, last, (held.keys, held.at))
    assert found.tolist() == [
        any(key == of and least <= at <= most for of, at in rows) for key, least, most in asked
    ]
