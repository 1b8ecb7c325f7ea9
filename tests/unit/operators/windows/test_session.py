"""Sessions against an oracle that sorts all rows of a key and walks them."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.operators.event_time import FOREVER, NEVER
from headwater.operators.windows.session import Session
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
    texts,
)
from unit.operators.windows.window_oracle import check_any_order, check_output_watermark, woken
from unit.operators.windows.windowed import BY, batch, last, made, named, windowing, without_late

IDENTITY = (*BY, "window_start")
HISTORY = ("revision", "_deleted")


def session(gap: int, late: str = "drop", keep: int = 0, by: tuple[str, ...] = BY) -> Session:
    return Session(windowing("session", late, keep, by), timedelta(microseconds=gap))


def early(operator: Session, every: int) -> Session:
    return replace(operator, every=timedelta(microseconds=every))


def crowded(operator: Session, every: int) -> Session:
    return replace(operator, every=every)


def named_shape(o: Session) -> str:
    every = o.every // timedelta(microseconds=1) if isinstance(o.every, timedelta) else f"{o.every}rows"
    shown = "" if o.every is None else f"-{every}"
    return f"{o.gap.microseconds}-{o.windowing.late}{shown}{'' if o.windowing.by else '-global'}"


SHAPES = [session(1), session(3), session(6), session(3, "correct", 4), session(5, "correct", 9)]
SHAPES += [session(2, "correct", 30), session(3, by=())]
EARLY = [
    early(session(3), 1),
    early(session(5), 4),
    early(session(2, "side"), 7),
    early(session(8, by=()), 3),
]
EARLY += [early(session(3, "correct", 4), 2), early(session(5, "correct", 9), 10)]
EARLY += [early(session(2, "correct", 30, by=()), 3)]
CROWDED = [crowded(session(3), 1), crowded(session(6), 3), crowded(session(4, "side", by=()), 4)]
CROWDED += [crowded(session(5, "correct", 9), 2), crowded(session(3, "correct", 20, by=()), 3)]
every_shape = pytest.mark.parametrize("operator", [*SHAPES, *EARLY], ids=named_shape)
crowded_shape = pytest.mark.parametrize("operator", CROWDED, ids=named_shape)
any_shape = pytest.mark.parametrize("operator", [*SHAPES, *EARLY, *CROWDED], ids=named_shape)
ONE_KEY = TIMED_ROWS.map(lambda row: {**row, "k": "a", "x": None})


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
        self.by, self.every = operator.windowing.by, operator.every
        self.used: list[Row] = []
        self.late: list[Row] = []

    def take(self, move: Move) -> None:
        horizon = [rows for rows in self._all() if rows[-1]["at"] + self.gap <= move.clock - self.keep]
        late = [self._late(row, horizon, move.clock) for row in move.rows]
        self.late += [row for row, is_late in zip(move.rows, late, strict=True) if is_late]
        self.used += [row for row, is_late in zip(move.rows, late, strict=True) if not is_late]

    def _late(self, row: Row, horizon: list[list[Row]], clock: int) -> bool:
        if row["at"] is None or row["at"] + self.gap <= clock - self.keep:
            return True
        own = [rows for rows in horizon if key(rows[0], self.by) == key(row, self.by)]
        return any(abs(row["at"] - old["at"]) < self.gap for rows in own for old in rows)

    def _all(self) -> list[list[Row]]:
        keys: dict[object, list[Row]] = {}
        for row in self.used:
            keys.setdefault(key(row, self.by), []).append(row)
        return [rows for some in keys.values() for rows in sessions(some, self.gap)]

    def ended(self, rows: list[Row], clock: int) -> bool:
        return bool(rows[-1]["at"] + self.gap <= clock)

    def result(self, rows: list[Row], complete: bool) -> Row:
        edges = {"window_start": rows[0]["at"], "window_end": rows[-1]["at"] + self.gap}
        return named(rows[0], self.by) | edges | made(rows) | {"complete": complete}

    def known(self, clock: int) -> list[str]:
        out = []
        for rows in self._all():
            if self.ended(rows, clock):
                out.append(self.result(rows, True))
            elif isinstance(self.every, timedelta) and clock > NEVER:
                every = self.every // timedelta(microseconds=1)
                some = [row for row in rows if row["at"] < clock // every * every]
                out += [self.result(some, False)] if some else []
        return sorted(map(repr, out))


class Crowds(Oracle):
    """What is shown of sessions when that depends on how many rows have come, step by step."""

    def __init__(self, operator: Session):
        super().__init__(operator)
        self.shown: list[tuple[list[Row], Row]] = []
        """Sessions as they were after the last step, with what was shown of them, if anything."""

    def take(self, move: Move) -> None:
        super().take(move)
        self.shown = [(rows, self._shown(rows, move.clock)) for rows in self._all()]

    def _shown(self, rows: list[Row], clock: int) -> Row:
        """What is to be seen of a session: it, or what was to be seen of it before, or nothing."""
        assert isinstance(self.every, int)
        if self.ended(rows, clock):
            return self.result(rows, True)
        if len(rows) < self.every:
            return {}
        before = [(old, out) for old, out in self.shown if any(old[0] is row for row in rows)]
        more = len(rows) // self.every > max([len(old) // self.every for old, _ in before], default=0)
        start = rows[0]["at"]
        others = [out for _, out in before if out and (out["complete"] or out["window_start"] != start)]
        (same,) = [out for old, out in before if old[0]["at"] == start] or [{}]
        return self.result(rows, False) if more or others else same

    def known(self, clock: int) -> list[str]:
        return sorted(repr(out) for _, out in self.shown if out)


def of(operator: Session, steps: list[Move]) -> Oracle:
    oracle = Crowds(operator) if isinstance(operator.every, int) else Oracle(operator)
    for move in steps:
        oracle.take(move)
    return oracle


@every_shape
@examples(50)
@given(steps=moves())
def test_any_split_clock_and_restart_gives_what_the_oracle_gives(
    operator: Session, steps: list[Move]
) -> None:
    played, oracle = play(operator, steps), of(operator, steps)
    assert texts(without_late(played.late)) == texts(oracle.late)
    clock, identity = steps[-1].clock, operator.identity
    assert last(played.out, identity, HISTORY) == oracle.known(clock)
    assert last(batch(operator, oracle.used, clock), identity, HISTORY) == oracle.known(clock)


@crowded_shape
@given(steps=moves())
def test_open_sessions_are_published_each_time_so_many_more_rows_have_come(
    operator: Session, steps: list[Move]
) -> None:
    played, oracle = play(operator, steps), of(operator, steps)
    assert texts(without_late(played.late)) == texts(oracle.late)
    assert last(played.out, operator.identity, HISTORY) == oracle.known(steps[-1].clock)


@any_shape
@examples(20)
@given(steps=moves(ONE_KEY))
def test_after_each_step_all_that_the_clock_has_passed_is_published(
    operator: Session, steps: list[Move]
) -> None:
    for count, move in enumerate(steps, 1):
        out = play(operator, steps[:count]).out
        assert last(out, operator.identity, HISTORY) == of(operator, steps[:count]).known(move.clock)


@any_shape
@examples(50)
@given(steps=moves(ONE_KEY))
def test_revisions_grow(operator: Session, steps: list[Move]) -> None:
    newest: dict[object, int] = {}
    for row in play(operator, steps).out:
        assert row["revision"] > newest.get(key(row, operator.identity), -1)
        newest[key(row, operator.identity)] = row["revision"]


@any_shape
@examples(20)
@given(steps=moves(ONE_KEY))
def test_a_session_is_published_again_only_if_it_has_more_rows_or_has_ended_or_goes_on(
    operator: Session, steps: list[Move]
) -> None:
    newest: dict[object, Row] = {}
    for row in play(operator, steps).out:
        before = newest.get(key(row, operator.identity))
        if before is None or before.get("_deleted"):
            assert not row.get("_deleted")
        elif not row.get("_deleted"):
            assert row["n"] > before["n"] or row["complete"] != before["complete"]
        newest[key(row, operator.identity)] = row


@pytest.mark.parametrize("operator", [session(3), *EARLY, CROWDED[1]], ids=named_shape)
@examples(10)
@given(steps=moves(ONE_KEY))
def test_steps_at_which_it_does_not_ask_to_be_woken_change_nothing(
    operator: Session, steps: list[Move]
) -> None:
    clocks = range(max(steps[-1].clock, -5), 60)
    idle = play(operator, [*steps, *(Move([], clock) for clock in clocks)]).out
    played = play(operator, steps)
    out = played.out
    for clock in clocks:
        if (timer := operator.next_timer(played.state)) is not None and timer <= clock:
            out += listed(operator.step(played.state, table([]), clock).out)
    assert texts(out) == texts(idle)


@every_shape
@examples(20)
@given(rows=st.lists(TIMED_ROWS, max_size=30), data=st.data())
def test_neither_order_nor_split_nor_restart_changes_a_byte(
    operator: Session, rows: list[Row], data: st.DataObject
) -> None:
    check_any_order(operator, rows, data)


@any_shape
@examples(20)
@given(steps=moves())
def test_what_comes_out_later_is_not_before_the_promise(operator: Session, steps: list[Move]) -> None:
    check_output_watermark(operator, steps)


@any_shape
@examples(20)
@given(rows=st.lists(TIMED_ROWS, max_size=20))
def test_woken_whenever_it_asks_it_publishes_all_and_forgets_all(operator: Session, rows: list[Row]) -> None:
    state, _ = woken(operator, rows)
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
    state = operator.initial_state(SCHEMA)
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
    assert "_deleted" not in session(5).output_schema(SCHEMA).names
    assert CORRECTING.output_schema(SCHEMA).names[-1] == "_deleted"


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


def shown(rows: list[Row]) -> list[tuple[int, int, int | None, int, bool | None]]:
    return [(*each, row["complete"]) for each, row in zip(told(rows), rows, strict=True)]


def test_an_open_session_is_shown_with_its_rows_from_before_a_multiple_of_every() -> None:
    steps = [Move([row(1), row(3), row(5)], NEVER), Move([], 3), Move([], 4), Move([], 5), Move([], 10)]
    assert shown(play(early(session(5), 4), steps).out) == [(1, 8, 2, 0, False), (1, 10, 3, 1, True)]


def test_a_row_that_belongs_before_what_was_shown_publishes_its_session_again_at_once() -> None:
    steps = [Move([row(1), row(4)], NEVER), Move([], 4), Move([row(2)], 5, "snapshot"), Move([], 8)]
    expected = [(1, 6, 1, 0, False), (1, 7, 2, 1, False), (1, 9, 3, 2, False)]
    assert shown(play(early(session(5), 4), steps).out) == expected


def test_a_session_that_has_not_changed_is_not_shown_again_and_none_is_after_its_end() -> None:
    steps = [Move([row(1)], NEVER), Move([], 4, "chunks"), Move([], 8, "chunks"), Move([], 12), Move([], 20)]
    assert shown(play(early(session(10), 4), steps).out) == [(1, 11, 1, 0, False), (1, 11, 1, 1, True)]


def test_a_session_that_was_shown_and_gets_an_earlier_start_is_retracted() -> None:
    steps = [Move([row(3)], NEVER), Move([], 4), Move([row(1)], 5, "chunks"), Move([], 8)]
    played = play(early(session(5), 4), steps)
    expected = [(3, 8, 1, 0, False), (1, 8, 2, 1, False), (3, 8, None, 1, None), (1, 8, 2, 2, True)]
    assert shown(played.out) == expected
    assert [r["_deleted"] for r in played.out] == [False, False, True, False]


def test_two_sessions_that_were_shown_and_become_one_are_one_from_then_on() -> None:
    steps = [Move([row(0), row(1), row(8), row(9)], NEVER), Move([row(5)], NEVER, "snapshot")]
    played = play(crowded(session(5), 2), [*steps, Move([], 14)])
    expected = [(0, 6, 2, 0, False), (8, 14, 2, 0, False)]
    expected += [(0, 14, 5, 1, False), (8, 14, None, 1, None), (0, 14, 5, 2, True)]
    assert shown(played.out) == expected


def test_a_published_session_that_goes_on_is_shown_as_open_if_it_has_rows_to_show() -> None:
    steps = [Move([row(0)], NEVER), Move([], 5), Move([row(4)], 6), Move([], 9)]
    expected = [(0, 5, 1, 0, True), (0, 5, 1, 1, False), (0, 9, 2, 2, True)]
    assert shown(play(early(CORRECTING, 3), steps).out)[-3:] == [
        (0, 5, 1, 0, True),
        (0, 9, 2, 1, False),
        (0, 9, 2, 2, True),
    ]
    assert shown(play(early(CORRECTING, 4), steps).out)[-3:] == expected


def test_with_early_results_there_are_retractions_and_numbers_of_rows_cannot_be_repeated() -> None:
    for operator in (early(session(5), 4), crowded(session(5), 4)):
        assert operator.output_schema(SCHEMA).names[-1] == "_deleted"
    assert [each.repeatable for each in (session(5), EARLY[0], CROWDED[0])] == [True, True, False]
    assert [early(session(5), 4).output_watermark(clock) for clock in (NEVER, 7, 8)] == [NEVER, 4, 8]


def test_it_asks_to_be_woken_when_more_is_to_be_shown() -> None:
    operator = early(session(30), 4)
    state = operator.initial_state(SCHEMA)
    operator.step(state, table([row(1), row(9)]), NEVER)
    timers = []
    while (timer := operator.next_timer(state)) is not None:
        timers.append(timer)
        operator.step(state, table([]), timer)
    assert timers == [4, 12, 39, 69]


def test_what_was_shown_is_held_in_one_piece() -> None:
    operator = early(session(5), 4)
    state = operator.initial_state(SCHEMA)
    for at in range(0, 400, 2):
        operator.step(state, table([row(at)]), at - 6)
    assert len(state.all()) <= 4
    assert len(state) < 40


def test_the_event_time_out_is_the_end() -> None:
    assert CORRECTING.event_time_out == "window_end"
    assert [CORRECTING.output_watermark(clock) for clock in (NEVER, 30)] == [NEVER, 10]
    assert (CORRECTING.identity, CORRECTING.uncompared_columns) == (IDENTITY, ("revision",))


@pytest.mark.slow
def test_what_is_gone_is_cleared_away() -> None:
    operator = session(5, "correct", 20)
    state = operator.initial_state(SCHEMA)
    for at in range(0, 4000, 4):
        operator.step(state, table([row(at), row(at + 1, str(at))]), at)
    assert len(state) < 40
    assert len(state.all()) < 20


def test_numbers_of_keys_that_only_had_late_rows_are_forgotten() -> None:
    operator = session(5)
    state = operator.initial_state(SCHEMA)
    for step in range(30):
        operator.step(state, table([row(0, f"{step}-{n}") for n in range(100)]), 1000)
    assert len(state.key_ids) <= 1024
