"""Sessions against an oracle that sorts all rows of a key and walks them."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.operators.operator import FOREVER, NEVER
from headwater.operators.windows.session import Session
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
from unit.operators.windows.windowed import BY, batch, last, made, named, windowing, without_late

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
        late = [self._late(row, settled, move.clock) for row in move.rows]
        self.late += [row for row, is_late in zip(move.rows, late, strict=True) if is_late]
        self.used += [row for row, is_late in zip(move.rows, late, strict=True) if not is_late]

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
    for move in steps:
        oracle.take(move)
    return oracle


@every_shape
@settings(max_examples=50, deadline=None)
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
@settings(max_examples=20, deadline=None)
@given(steps=moves(TIMED_ROWS.map(lambda row: {**row, "k": "a", "x": None})))
def test_after_each_step_all_that_the_clock_has_passed_is_published(
    operator: Session, steps: list[Move]
) -> None:
    for count, move in enumerate(steps, 1):
        out = play(operator, steps[:count]).out
        assert last(out, IDENTITY, HISTORY) == of(operator, steps[:count]).known(move.clock)


@every_shape
@settings(max_examples=50, deadline=None)
@given(steps=moves(TIMED_ROWS.map(lambda row: {**row, "k": "a", "x": None})))
def test_revisions_grow(operator: Session, steps: list[Move]) -> None:
    newest: dict[object, int] = {}
    for row in play(operator, steps).out:
        assert row["revision"] > newest.get(key(row, IDENTITY), -1)
        newest[key(row, IDENTITY)] = row["revision"]


@every_shape
@settings(max_examples=20, deadline=None)
@given(rows=st.lists(TIMED_ROWS, max_size=30), data=st.data())
def test_neither_order_nor_split_nor_restart_changes_a_byte(
    operator: Session, rows: list[Row], data: st.DataObject
) -> None:
    some, others = data.draw(splits(rows)), data.draw(splits(rows))
    outs = [play(operator, [*steps, Move([], 23), Move([], FOREVER)]).out for steps in (some, others)]
    assert texts(outs[0]) == texts(outs[1])


@every_shape
@settings(max_examples=20, deadline=None)
@given(steps=moves())
def test_what_comes_out_later_is_not_before_the_promise(operator: Session, steps: list[Move]) -> None:
    promise = NEVER
    for move, step in zip(steps, play(operator, steps).steps, strict=True):
        assert all(row["window_end"] >= promise for row in listed(step.out))
        promise = operator.promise(move.clock)


@every_shape
@settings(max_examples=20, deadline=None)
@given(rows=st.lists(TIMED_ROWS, max_size=20))
def test_woken_whenever_it_asks_it_publishes_all_and_forgets_all(operator: Session, rows: list[Row]) -> None:
    state = operator.begin(SCHEMA)
    operator.step(state, table(rows), NEVER)
    while (wake := operator.wake(state)) is not None:
        operator.step(state, table([]), wake)
    assert len(state) == 0


CORRECTING = session(5, "correct", 20)


def row(at: int | None, k: str = "a") -> Row:
    return {"k": k, "x": None, "v": 1, "tags": None, "at": at}


def told(rows: list[Row]) -> list[tuple[int, int, int | None, int]]:
    return [(r["window_start"], r["window_end"], r["n"], r["revision"]) for r in rows]


def test_less_than_gap_apart_is_together_and_exactly_gap_is_not() -> None:
    played = play(session(5), [Move([row(0), row(4), row(9), row(13), row(20)], NEVER), Move([], FOREVER)])
    assert told(played.out) == [(0, 9, 2, 0), (9, 18, 2, 0), (20, 25, 1, 0)]


def test_an_event_between_two_sessions_makes_them_one() -> None:
    steps = [Move([row(0), row(8)], NEVER), Move([row(4)], NEVER, "chunks"), Move([], FOREVER)]
    assert told(play(session(5), steps).out) == [(0, 13, 3, 0)]


def test_a_session_is_published_when_the_clock_comes_to_its_end() -> None:
    operator = session(5)
    state = operator.begin(SCHEMA)
    operator.step(state, table([row(0), row(3)]), NEVER)
    operator.step(state, table([]), 5)
    assert len(operator.step(state, table([]), 7).out) == 0
    assert told(listed(operator.step(state, table([]), 8).out)) == [(0, 8, 2, 0)]


def test_a_row_behind_the_clock_is_used_by_a_session_that_goes_on() -> None:
    played = play(session(5), [Move([row(0), row(4)], NEVER), Move([row(2)], 6), Move([], 9)])
    assert told(played.out) == [(0, 9, 3, 0)]


def test_a_row_of_a_session_that_has_ended_is_late_also_when_it_would_go_on_alone() -> None:
    played = play(session(5), [Move([row(0)], NEVER), Move([row(4), row(5)], 6), Move([], FOREVER)])
    assert [(r["at"], r["late_by"], r["late_window_start"]) for r in played.late] == [(4, 2, 4)]
    assert told(played.out) == [(0, 5, 1, 0), (5, 10, 1, 0)]


def test_without_corrections_nothing_is_ever_retracted() -> None:
    assert "_deleted" not in session(5).output(SCHEMA).names
    assert CORRECTING.output(SCHEMA).names[-1] == "_deleted"


def test_a_late_row_publishes_its_session_again() -> None:
    played = play(CORRECTING, [Move([row(0), row(4)], NEVER), Move([], 9), Move([row(2)], 10)])
    assert told(played.out) == [(0, 9, 2, 0), (0, 9, 3, 1)]


def test_a_late_row_between_two_published_sessions_retracts_the_second() -> None:
    played = play(CORRECTING, [Move([row(0), row(8)], NEVER), Move([], 13), Move([row(4)], 14)])
    assert told(played.out) == [(0, 5, 1, 0), (8, 13, 1, 0), (0, 13, 3, 1), (8, 13, None, 1)]
    assert [r["_deleted"] for r in played.out] == [False, False, False, True]
    assert played.out[-1]["complete"] is None


def test_a_late_row_before_a_published_session_retracts_it_and_takes_its_place() -> None:
    played = play(CORRECTING, [Move([row(4)], NEVER), Move([], 9), Move([row(1)], 10)])
    assert told(played.out) == [(4, 9, 1, 0), (1, 9, 2, 1), (4, 9, None, 1)]


def test_a_published_session_that_goes_on_is_retracted_until_it_ends() -> None:
    played = play(CORRECTING, [Move([row(0)], NEVER), Move([], 5), Move([row(4)], 6), Move([], 9)])
    assert told(played.out) == [(0, 5, 1, 0), (0, 5, None, 1), (0, 9, 2, 2)]


def test_the_event_time_out_is_the_end() -> None:
    assert CORRECTING.event_time_out == "window_end"
    assert [CORRECTING.promise(clock) for clock in (NEVER, 30)] == [NEVER, 10]
    assert (CORRECTING.identity, CORRECTING.history) == (IDENTITY, ("revision",))


def test_what_is_gone_is_cleared_away() -> None:
    operator = session(5, "correct", 20)
    state = operator.begin(SCHEMA)
    for at in range(0, 4000, 4):
        operator.step(state, table([row(at), row(at + 1, str(at))]), at)
    assert len(state) < 40
    assert len(operator.snapshot(state)) < 20


def test_a_step_that_learns_nothing_has_no_chunk() -> None:
    operator = session(5)
    state = operator.begin(SCHEMA)
    assert operator.step(state, table([row(1)]), NEVER).chunk is not None
    assert operator.step(state, table([row(None)]), 3).chunk is None
    assert operator.step(state, table([]), 6).chunk is not None


def test_numbers_of_keys_that_only_had_late_rows_are_forgotten() -> None:
    operator = session(5)
    state = operator.begin(SCHEMA)
    for step in range(30):
        operator.step(state, table([row(0, f"{step}-{n}") for n in range(100)]), 1000)
    assert len(state.members) <= 1024
