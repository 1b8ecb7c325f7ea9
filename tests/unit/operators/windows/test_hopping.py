"""Hopping windows against an oracle that looks at all rows for every window there could be."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.operators.event_time import NEVER
from headwater.operators.windows.hopping import Hopping
from soaking import examples
from unit.operators.stepping import (
    ROWS,
    TIMED_ROWS,
    Move,
    Row,
    key,
    listed,
    moves,
    play,
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


def hopping(
    size: int, hop: int, offset: int = 0, late: str = "drop", keep: int = 0, every: int | None = None
) -> Hopping:
    lengths = [timedelta(microseconds=n) for n in (size, hop, offset)]
    early = None if every is None else timedelta(microseconds=every)
    return Hopping(windowing("hopping", late, keep), *lengths, early)


SHAPES = [
    hopping(5, 5),
    hopping(7, 7, 3),
    hopping(6, 2),
    hopping(7, 3, 1),
    hopping(6, 2, 0, "correct", 4),
    hopping(7, 3, 1, "correct", 9),
    hopping(5, 5, 2, "correct", 12),
    hopping(8, 8, 0, "drop", 0, 2),
    hopping(6, 3, 1, "drop", 0, 2),
    hopping(10, 5, 0, "correct", 6, 4),
]
every_shape = pytest.mark.parametrize(
    "operator", SHAPES, ids=lambda o: f"{o.size.microseconds}-{o.hop.microseconds}-{o.windowing.late}"
)


def numbers(operator: Hopping) -> tuple[int, int, int, int]:
    lengths = (operator.size, operator.hop, operator.offset, operator.windowing.keep)
    size, hop, offset, keep = (each // timedelta(microseconds=1) for each in lengths)
    return size, hop, offset, keep


def starts(operator: Hopping, at: int) -> list[int]:
    size, hop, offset, _ = numbers(operator)
    return [start for start in range(-200 * hop + offset, 200 * hop, hop) if start <= at < start + size]


def is_late(operator: Hopping, row: Row, clock: int) -> bool:
    size, _, _, keep = numbers(operator)
    return row["at"] is None or any(start + size <= clock - keep for start in starts(operator, row["at"]))


def window(operator: Hopping, rows: list[Row], start: int, complete: bool) -> Row:
    size = numbers(operator)[0]
    edges = {"window_start": start, "window_end": start + size}
    return named(rows[0]) | edges | made(rows) | {"complete": complete}


def counts(operator: Hopping, used: list[Row]) -> dict[tuple[int, object], list[Row]]:
    """The rows of each window and key."""
    cells: dict[tuple[int, object], list[Row]] = {}
    for row in used:
        for start in starts(operator, row["at"]):
            cells.setdefault((start, key(row, BY)), []).append(row)
    return cells


def expected(operator: Hopping, used: list[Row], clock: int) -> list[str]:
    """What is known of each window at a clock, from all rows that were not late."""
    size, _, offset, _ = numbers(operator)
    out = []
    for (start, _), rows in counts(operator, used).items():
        if start + size <= clock:
            out.append(window(operator, rows, start, True))
        elif isinstance(operator.every, timedelta) and clock > NEVER:
            every = operator.every // timedelta(microseconds=1)
            early = [row for row in rows if row["at"] < (clock - offset) // every * every + offset]
            out += [window(operator, early, start, False)] if early else []
    return sorted(map(repr, out))


ORACLE = WindowOracle(is_late, expected)


@every_shape
@examples(50)
@given(steps=moves())
def test_any_split_clock_and_restart_gives_what_the_oracle_gives(
    operator: Hopping, steps: list[Move]
) -> None:
    ORACLE.check(operator, steps)


@pytest.mark.parametrize("shape", [(5, 5, 0, "drop", 0), (6, 2, 1, "drop", 0), (7, 3, 0, "correct", 5)])
@examples(50)
@given(steps=moves(), every=st.integers(1, 4))
def test_open_windows_are_published_each_time_so_many_more_rows_have_come(
    shape: tuple[int, int, int, str, int], steps: list[Move], every: int
) -> None:
    operator = replace(hopping(*shape), every=every)
    used: list[Row] = []
    for move, step in zip(steps, play(operator, steps).steps, strict=True):
        before = counts(operator, used)
        used += [row for row in move.rows if not is_late(operator, row, move.clock)]
        passed = {
            cell: len(rows)
            for cell, rows in counts(operator, used).items()
            if cell[0] + numbers(operator)[0] > move.clock
            and len(rows) // every > len(before.get(cell, [])) // every
        }
        early = [row for row in listed(step.out) if not row["complete"]]
        assert {(row["window_start"], key(row, BY)): row["n"] for row in early} == passed
    out = [row for row in play(operator, steps).out if row["complete"]]
    assert last(out, IDENTITY) == expected(replace(operator, every=None), used, steps[-1].clock)


@every_shape
@examples(20)
@given(steps=moves())
def test_after_each_step_all_that_the_clock_has_passed_is_published(
    operator: Hopping, steps: list[Move]
) -> None:
    ORACLE.check_each_step(operator, steps)


@every_shape
@examples(20)
@given(steps=moves())
def test_revisions_count_the_publications_of_a_window(operator: Hopping, steps: list[Move]) -> None:
    check_revisions(operator, steps)


@every_shape
@examples(20)
@given(rows=st.lists(TIMED_ROWS, max_size=30), data=st.data())
def test_neither_order_nor_split_nor_restart_changes_a_byte(
    operator: Hopping, rows: list[Row], data: st.DataObject
) -> None:
    check_any_order(operator, rows, data)


@every_shape
@examples(20)
@given(steps=moves(ROWS))
def test_what_comes_out_later_is_not_before_the_promise(operator: Hopping, steps: list[Move]) -> None:
    check_output_watermark(operator, steps)


@every_shape
@examples(20)
@given(rows=st.lists(TIMED_ROWS, max_size=20))
def test_woken_whenever_it_asks_it_publishes_all_and_forgets_all(operator: Hopping, rows: list[Row]) -> None:
    state, _ = woken(operator, rows)
    assert len(state.panes) == len(state.publications) == 0
