"""Within against an oracle that compares each left row with each right one."""

from __future__ import annotations

import pickle
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.errors import UsageError
from headwater.operators.event_time import FOREVER, NEVER
from headwater.operators.joins import arrivals
from headwater.operators.joins.waiting_rows import WaitingRows
from headwater.operators.joins.within import HOW, Within
from headwater.operators.memory.entries import Entries
from headwater.operators.memory.rows_by_key_and_time import RowsByKeyAndTime
from headwater.operators.memory.sorted_runs import Limits, SortedRuns
from headwater.operators.pairing import pairing
from headwater.schema import parse
from soaking import examples
from unit.operators.joins.pairs import (
    ANY,
    FIELD,
    LEFTS,
    ON,
    PREFIX,
    RIGHTS,
    Field,
    Twin,
    batch,
    half_alike,
    judged,
    late,
    met,
    play,
    splits,
)
from unit.operators.stepping import LOGGED, SPILLED, Row, TablesInMemory, listed, reopened, texts

SPANS = [(0, 0), (3, 0), (0, 4), (2, 5), (40, 40)]
ways = pytest.mark.parametrize("how", HOW)


def within(how: str = "inner", before: int = 2, after: int = 5) -> Within:
    lengths = (timedelta(microseconds=before), timedelta(microseconds=after))
    return Within(ON, ("at", "at"), *lengths, how, PREFIX)


def left(at: int | None, v: int = 0, k: str | None = "a") -> Row:
    return {"k": k, "x": 0.0, "v": v, "at": at}


def right(at: int | None, w: int = 0, k: str | None = "a") -> Row:
    return {"k": k, "y": 0.0, "w": w, "at": at}


def held(waiting: WaitingRows) -> int:
    """How many rows can be found, though some more may lie beside them."""
    return len(waiting.rows.runs.all())


def matches(one: Row, other: Row, before: int, after: int) -> bool:
    near = one["at"] - before <= other["at"] <= one["at"] + after
    return near and met(one, ("k", "x")) == met(other, ("k", "y")) is not None


def both(one: Row | None, other: Row | None) -> Row:
    """A row out, written down once more."""
    if one is None:
        assert other is not None
        one = {"k": other["k"], "x": other["y"], "v": None, "at": other["at"]}
    other = other or {"w": None, "at": None}
    return {**one, "w": other["w"], f"{PREFIX}at": other["at"]}


def expected(lefts: list[Row], rights: list[Row], how: str, span: tuple[int, int], clock: int) -> list[Row]:
    """All that comes out of rows that were in time, once the clock has come so far."""
    before, after = span
    pairs = [(one, other) for one in lefts for other in rights if matches(one, other, before, after)]
    alone = [
        one
        for one in lefts
        if one["at"] + after < clock and not any(matches(one, other, before, after) for other in rights)
    ]
    others = [
        other
        for other in rights
        if other["at"] + before < clock and not any(matches(one, other, before, after) for one in lefts)
    ]
    if how == "semi":
        return [one for one in lefts if any(matches(one, other, before, after) for other in rights)]
    if how == "anti":
        return alone
    out = [both(*pair) for pair in pairs]
    out += [both(one, None) for one in alone] if how in ("left", "full") else []
    return out + ([both(None, other) for other in others] if how in ("right", "full") else [])


def rows_of(steps: list[Twin]) -> tuple[list[Row], list[Row]]:
    return [row for step in steps for row in step.left], [row for step in steps for row in step.right]


@ways
@examples(40)
@given(ANY, st.sampled_from(SPANS))
def test_after_every_step_all_has_come_out_that_the_oracle_gives(
    how: str, steps: list[Twin], span: tuple[int, int]
) -> None:
    played = play(within(how, *span), steps)
    good, *judged_late = judged(steps)
    out: list[Row] = []
    for number, step in enumerate(played.steps):
        out += listed(step.out)
        told = expected(*rows_of(good[: number + 1]), how, span, steps[number].clock)
        assert sorted(texts(out)) == sorted(texts(told))
    assert list(map(texts, late(played.steps))) == list(map(texts, judged_late))
    assert sum(map(len, rows_of(good))) + sum(map(len, judged_late)) == sum(map(len, rows_of(steps)))


@ways
@examples(25)
@given(st.lists(LEFTS, max_size=12), st.lists(RIGHTS, max_size=12), st.data())
def test_a_batch_gives_what_the_steps_give_whatever_the_order(
    how: str, lefts: list[Row], rights: list[Row], data: st.DataObject
) -> None:
    clock = data.draw(st.sampled_from([-5, 10, 20, FOREVER]))
    played = play(within(how), [*data.draw(splits(lefts, rights)), Twin([], [], clock)])
    assert sorted(texts(batch(within(how), lefts, rights, clock))) == sorted(texts(played.out))


@ways
@examples(25)
@given(ANY)
def test_restarts_change_no_byte_of_what_comes_out(how: str, steps: list[Twin]) -> None:
    smooth = [Twin(step.left, step.right, step.clock) for step in steps]
    one, other = play(within(how), steps), play(within(how), smooth)
    assert [texts(listed(step.out)) for step in one.steps] == [texts(listed(s.out)) for s in other.steps]


@ways
@examples(25)
@given(ANY, st.sampled_from(SPANS))
def test_no_row_comes_out_from_before_what_was_promised(
    how: str, steps: list[Twin], span: tuple[int, int]
) -> None:
    operator = within(how, *span)
    played = play(operator, steps)
    for before, step in zip(steps, played.steps[1:], strict=False):
        assert all(row["at"] >= operator.output_watermark(before.clock) for row in listed(step.out))


@examples(25)
@given(ANY)
def test_the_state_is_the_rows_that_can_still_match(steps: list[Twin]) -> None:
    operator = within("left")
    played = play(operator, steps)
    lefts, rights = rows_of(judged(steps)[0])
    clock = steps[-1].clock
    assert held(played.state.left) == sum(row["at"] + 5 >= clock for row in lefts)
    keyed = [row for row in rights if met(row, ("k", "y")) is not None]
    assert held(played.state.right) == sum(row["at"] + 2 >= clock for row in keyed)


def test_either_side_may_come_first() -> None:
    for steps in (
        [Twin([left(10)], [], NEVER), Twin([], [right(12)], NEVER)],
        [Twin([], [right(12)], NEVER), Twin([left(10)], [], NEVER)],
        [Twin([left(10)], [right(12)], NEVER)],
    ):
        assert play(within(), steps).out == [both(left(10), right(12))]


@pytest.mark.parametrize(("at", "matched"), [(7, False), (8, True), (15, True), (16, False)])
def test_both_ends_of_the_span_match(at: int, matched: bool) -> None:
    assert len(play(within(), [Twin([left(10)], [right(at)], NEVER)]).out) == matched


def test_a_row_without_a_match_comes_out_when_the_clock_has_passed_the_last_time_of_one() -> None:
    operator = within("full")
    state = operator.initial_state(FIELD.schema)
    operator.step(state, FIELD.sent([left(10)], [right(20)]), NEVER)
    assert operator.next_timer(state) == 16
    assert len(operator.step(state, FIELD.sent([], []), 15).out) == 0
    assert listed(operator.step(state, FIELD.sent([], []), 16).out) == [both(left(10), None)]
    assert operator.next_timer(state) == 23
    assert listed(operator.step(state, FIELD.sent([], []), 23).out) == [both(None, right(20))]
    assert operator.next_timer(state) is None


def test_a_right_row_that_comes_out_alone_has_its_time_and_key_as_those_of_the_left() -> None:
    played = play(within("right"), [Twin([], [right(20, 7)], NEVER), Twin([], [], FOREVER)])
    assert played.out == [{"k": "a", "x": 0.0, "v": None, "at": 20, "w": 7, "r_at": 20}]


def test_a_semi_join_tells_a_left_row_once_and_at_once() -> None:
    steps = [
        Twin([left(10)], [], NEVER),
        Twin([], [right(11), right(12)], NEVER),
        Twin([], [right(13)], NEVER),
    ]
    assert [len(step.out) for step in play(within("semi"), steps).steps] == [0, 1, 0]


def test_a_null_key_matches_nothing_and_comes_out_alone() -> None:
    steps = [Twin([left(10, k=None)], [right(10, k=None)], NEVER), Twin([], [], FOREVER)]
    assert play(within("inner"), steps).out == []
    assert play(within("anti"), steps).out == [left(10, k=None)]
    assert len(play(within("full"), steps).out) == 2


def test_a_row_from_before_the_clock_or_without_a_time_is_late() -> None:
    played = play(within(), [Twin([left(4), left(5), left(None)], [right(4), right(None)], 5)])
    assert late(played.steps) == ([left(4), left(None)], [right(4), right(None)])


def test_a_stream_may_be_joined_with_itself() -> None:
    field = Field(FIELD.left, FIELD.left, pairing("join", "k"))
    operator = Within(field.on, ("at", "at"), timedelta(microseconds=1), timedelta(0), prefix="earlier_")
    rows = [left(1, 1), left(2, 2), left(4, 3)]
    found = field.play(operator, [Twin(rows[:1], rows[:1], NEVER), Twin(rows[1:], rows[1:], NEVER)]).out
    assert sorted((row["v"], row["earlier_v"]) for row in found) == [(1, 1), (2, 1), (2, 2), (3, 3)]


def test_pairs_come_in_the_order_of_arrival_new_left_rows_first() -> None:
    steps = [
        Twin([left(10, 1), left(9, 2)], [right(10, 1), right(9, 2)], NEVER),
        Twin([left(10, 3)], [right(10, 3)], NEVER),
    ]
    found = [[(row["v"], row["w"]) for row in listed(step.out)] for step in play(within(), steps).steps]
    assert found == [[(1, 1), (1, 2), (2, 1), (2, 2)], [(3, 1), (3, 2), (3, 3), (1, 3), (2, 3)]]


@pytest.mark.parametrize("limits", [LOGGED, Limits(20_000, 64, 10_000)])
def test_memory_is_given_back_and_so_are_files(limits: Limits) -> None:
    operator, files = within("left", 0, 10), TablesInMemory()
    state, stored = operator.initial_state(FIELD.schema), []
    for step in range(40):
        at = step * 100
        rows = [left(at + n % 50, n, f"{step}-{n}") for n in range(200)]
        done = operator.step(
            state, FIELD.sent(rows, [right(at + 50, k=f"{step}-{n}") for n in range(200)]), at
        )
        saved = operator.memory(state).save(files, limits)
        stored.append((len(done.out), held(state.left), len(state.left), len(saved.stretches)))
    # Of each step's rows 36 of 200 are within ten of their right one.
    assert {found for _, found, _, _ in stored} == {200}
    assert max(lying for _, _, lying, _ in stored) < 1500
    assert max(files for _, _, _, files in stored) < 20
    operator.step(state, FIELD.sent([], []), 10_000)
    assert len(state.left) == len(state.right) == len(state.left.marks) == 0
    assert operator.next_timer(state) is None


def test_a_step_costs_by_its_rows_and_not_by_those_that_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    operator = within("full", 0, 1_000_000)
    state = operator.initial_state(FIELD.schema)
    operator.step(state, FIELD.sent([left(n, n, f"k{n}") for n in range(20_000)], []), NEVER)
    state = reopened(
        operator, FIELD.schema, operator.memory(state).save(files := TablesInMemory(), SPILLED), files
    )
    taken: list[int] = []
    take = Entries.take
    monkeypatch.setattr(Entries, "take", lambda self, at: taken.append(len(at)) or take(self, at))
    monkeypatch.setattr(SortedRuns, "all", None)
    step = operator.step(state, FIELD.sent([left(7, 1, "k7")], [right(9, 2, "k9")]), 5)
    assert len(step.out) == 1
    assert sum(taken) < 100


@pytest.mark.parametrize("how", ["semi", "anti"])
def test_whether_there_is_a_match_is_asked_without_making_all_pairs(
    how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    near, found = RowsByKeyAndTime.near, []
    monkeypatch.setattr(RowsByKeyAndTime, "near", lambda *args: found.append(near(*args)) or found[-1])
    monkeypatch.setattr(RowsByKeyAndTime, "find", None)
    lefts, rights = [left(n) for n in range(500)], [right(250 + n) for n in range(500)]
    steps = [Twin(lefts, [], NEVER), Twin([], rights, 0), Twin(lefts, [], 0), Twin([], rights, 0)]
    assert len(play(within(how, 0, 500), steps).out) == (1000 if how == "semi" else 0)
    assert max(len(each.numbers) for each in found) <= 1000


@ways
@examples(15)
@given(steps=ANY)
def test_keys_that_share_half_of_their_hashes_are_told_apart(how: str, steps: list[Twin]) -> None:
    smooth = play(within(how), steps)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrivals, "hashed_groups", half_alike)
        alike = play(within(how), steps)
    assert [texts(listed(step.out)) for step in alike.steps] == [texts(listed(s.out)) for s in smooth.steps]


def test_columns_that_cannot_be_told_apart_and_wrong_times_are_refused() -> None:
    with pytest.raises(UsageError, match='within has two columns "at"'):
        Within(ON, ("at", "at"), timedelta(), timedelta()).output_schema(FIELD.schema)
    with pytest.raises(UsageError, match='within cannot take column "w" as the event time'):
        Within(ON, ("at", "w"), timedelta(), timedelta(), "inner", PREFIX).output_schema(FIELD.schema)
    assert within("semi").output_schema(FIELD.schema).names == FIELD.left.names
    assert within().key == ("_key0", "_key1")


def test_an_operator_can_be_sent_to_a_worker() -> None:
    assert pickle.loads(pickle.dumps(within("full"))) == within("full")


@pytest.mark.slow
@examples(10)
@given(st.integers(0, 2**32), st.sampled_from(HOW))
def test_many_rows_in_many_small_steps_give_what_the_oracle_gives(seed: int, how: str) -> None:
    """Runs are merged, and memory is tidied, only where there are many rows."""
    draw = np.random.default_rng(seed)
    field = Field(parse("k BIGINT, v BIGINT, at TIMESTAMP"), parse("k BIGINT, v BIGINT, at TIMESTAMP"))
    field = Field(field.left, field.right, pairing("join", "k"))
    operator = Within(field.on, ("at", "at"), timedelta(microseconds=3), timedelta(microseconds=6), how, "r_")
    steps: list[Twin] = []
    for number in range(30):
        sides: list[Any] = [
            [
                {"k": int(k), "v": int(v), "at": int(at)}
                for k, v, at in zip(
                    draw.integers(0, 60, 100),
                    draw.integers(0, 9, 100),
                    number * 10 + draw.integers(0, 15, 100),
                    strict=True,
                )
            ]
            for _ in "lr"
        ]
        steps.append(Twin(*sides, number * 10, draw.choice([None, None, "chunks", "snapshot"])))
    steps.append(Twin([], [], FOREVER))
    played = field.play(operator, steps)
    lefts, rights = rows_of(judged(steps)[0])
    by_key: dict[int, tuple[list[Row], list[Row]]] = {}
    for side, rows in enumerate((lefts, rights)):
        for row in rows:
            by_key.setdefault(row["k"], ([], []))[side].append(row)
    told = sum((len(plain(*sides, how)) for sides in by_key.values()), 0)
    assert len(played.out) == told
    assert sorted(texts(played.out)) == sorted(
        texts([row for sides in by_key.values() for row in plain(*sides, how)])
    )


def plain(lefts: list[Row], rights: list[Row], how: str) -> list[Row]:
    """What comes out of rows of one key, all told."""
    pairs = [(one, other) for one in lefts for other in rights if -3 <= other["at"] - one["at"] <= 6]
    known = {id(one) for one, _ in pairs}, {id(other) for _, other in pairs}
    alone = [one for one in lefts if id(one) not in known[0]]
    if how in ("semi", "anti"):
        return alone if how == "anti" else [one for one in lefts if id(one) in known[0]]
    out = [{**one, "r_v": other["v"], "r_at": other["at"]} for one, other in pairs]
    if how in ("left", "full"):
        out += [{**one, "r_v": None, "r_at": None} for one in alone]
    if how in ("right", "full"):
        missing = [other for other in rights if id(other) not in known[1]]
        out += [{**other, "v": None, "r_v": other["v"], "r_at": other["at"]} for other in missing]
    return out
