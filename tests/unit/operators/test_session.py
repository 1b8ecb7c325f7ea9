"""Sessions against an oracle that sorts all rows of a key and walks them."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.operators.operator import FOREVER, NEVER
from headwater.operators.session import Session
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
HISTORY = ("revision", "_deleted")


def session(gap: int, late: str = "drop", keep: int = 0) -> Session:
    return Session(windowing("session", late, keep), timedelta(microseconds=gap))


SHAPES = [session(1), session(3), session(6), session(3, "correct", 4), session(5, "correct", 9)]
SHAPES += [session(2, "correct", 30)]
every_shape = pytest.mark.parametrize(
    "operator", SHAPES, ids=lambda o: f"{o.gap.microseconds}-{o.windowing.late}"
)


def sessions(rows: list[Row], gap: int) -> list[list[Row]]:
    """The rows of one key, session by session."""
    found: list[list[Row]] = []
    for row in sorted(rows, key=lambda row: row["at"]):
        if found and row["at"] - found[-1][-1]["at"] < gap:
            found[-1].append(row)
        else:
            found.append([row])
    return found


class Oracle:
    """All rows that were used, and which were late."""

    def __init__(self, operator: Session):
        self.gap = operator.gap // timedelta(microseconds=1)
        self.keep = operator.windowing.keep // timedelta(microseconds=1)
        self.used: list[Row] = []
        self.late: list[Row] = []

    def take(self, move: Move) -> None:
        settled = [rows for rows in self._all() if rows[-1]["at"] + self.gap <= move.clock - self.keep]
        for row in move.rows:
            (self.late if self._late(row, settled, move.clock) else self._new).append(row)
        self.used += self._new
        self._new = []

    _new: list[Row] = []  # noqa: RUF012

    def _late(self, row: Row, settled: list[list[Row]], clock: int) -> bool:
        if row["at"] is None or row["at"] + self.gap <= clock - self.keep:
            return True
        own = [rows for rows in settled if key(rows[0], BY) == key(row, BY)]
        return any(abs(row["at"] - old["at"]) < self.gap for rows in own for old in rows)

    def _all(self) -> list[list[Row]]:
        keys: dict[object, list[Row]] = {}
        for row in self.used:
            keys.setdefault(key(row, BY), []).append(row)
        return [rows for some in keys.values() for rows in sessions(some, self.gap)]

    def known(self, clock: int) -> list[str]:
        out = []
        for rows in self._all():
            edges = {"window_start": rows[0]["at"], "window_end": rows[-1]["at"] + self.gap}
            if edges["window_end"] <= clock:
                out.append(named(rows[0]) | edges | made(rows) | {"complete": True})
        return sorted(map(repr, out))


def of(operator: Session, steps: list[Move]) -> Oracle:
    oracle = Oracle(operator)
    oracle._new = []
    for move in steps:
        oracle.take(move)
    return oracle


@every_shape
@settings(max_examples=200, deadline=None)
@given(steps=moves())
def test_any_split_clock_and_restart_gives_what_the_oracle_gives(
    operator: Session, steps: list[Move]
) -> None:
    played, oracle = play(operator, steps), of(operator, steps)
    assert texts(without_late(played.late)) == texts(oracle.late)
    assert last(played.out, IDENTITY, HISTORY) == oracle.known(steps[-1].clock)
    assert last(batch(operator, oracle.used, steps[-1].clock), IDENTITY, HISTORY) == oracle.known(
        steps[-1].clock
    )


@every_shape
@settings(max_examples=60, deadline=None)
@given(steps=moves(TIMED_ROWS.map(lambda row: {**row, "k": "a", "x": None})))
def test_after_each_step_all_that_the_clock_has_passed_is_published(
    operator: Session, steps: list[Move]
) -> None:
    for count, move in enumerate(steps, 1):
        out = play(operator, steps[:count]).out
        assert last(out, IDENTITY, HISTORY) == of(operator, steps[:count]).known(move.clock)


@every_shape
@settings(max_examples=150, deadline=None)
@given(steps=moves(TIMED_ROWS.map(lambda row: {**row, "k": "a", "x": None})))
def test_revisions_grow(operator: Session, steps: list[Move]) -> None:
    newest: dict[object, int] = {}
    for row in play(operator, steps).out:
        assert row["revision"] > newest.get(key(row, IDENTITY), -1)
        newest[key(row, IDENTITY)] = row["revision"]


@every_shape
@settings(max_examples=60, deadline=None)
@given(rows=st.lists(TIMED_ROWS, max_size=30), data=st.data())
def test_neither_order_nor_split_nor_restart_changes_a_byte(
    operator: Session, rows: list[Row], data: st.DataObject
) -> None:
    some, others = data.draw(splits(rows)), data.draw(splits(rows))
    outs = [play(operator, [*steps, Move([], 23), Move([], FOREVER)]).out for steps in (some, others)]
    assert texts(outs[0]) == texts(outs[1])


@every_shape
@settings(max_examples=60, deadline=None)
@given(steps=moves())
def test_what_comes_out_later_is_not_before_the_promise(operator: Session, steps: list[Move]) -> None:
    promise = NEVER
    for move, step in zip(steps, play(operator, steps).steps, strict=True):
        assert all(row["window_end"] >= promise for row in listed(step.out))
        promise = operator.promise(move.clock)


@every_shape
@settings(max_examples=60, deadline=None)
@given(rows=st.lists(TIMED_ROWS, max_size=20))
def test_woken_whenever_it_asks_it_publishes_all_and_forgets_all(operator: Session, rows: list[Row]) -> None:
    state = operator.begin(SCHEMA)
    operator.step(state, table(rows), NEVER)
    while (wake := operator.wake(state)) is not None:
        operator.step(state, table([]), wake)
    assert len(state) == 0
