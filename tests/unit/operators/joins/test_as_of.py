"""As-of joins against an oracle that goes through all versions for each event."""

from __future__ import annotations

import itertools
import pickle
from dataclasses import replace
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.errors import UsageError
from headwater.operators.event_time import FOREVER, NEVER
from headwater.operators.joins import arrivals
from headwater.operators.joins.as_of import AsOf
from headwater.operators.memory.entries import Entries
from headwater.operators.memory.sorted_runs import Limits, SortedRuns
from headwater.operators.pairing import pairing
from headwater.schema import parse
from soaking import examples
from unit.operators.joins.pairs import (
    LEFTS,
    ON,
    PREFIX,
    RIGHTS,
    Field,
    Twin,
    half_alike,
    met,
    one_key,
    splits,
    twins,
)
from unit.operators.stepping import SPILLED, Row, TablesInMemory, listed, rank, reopened, texts

FIELD = Field(
    parse("k STRING, x DOUBLE, v BIGINT, asked TIMESTAMP, at TIMESTAMP"),
    parse("k STRING, y DOUBLE, w BIGINT, _deleted BOOLEAN, at TIMESTAMP"),
    ON,
)
KEEP = 10
BACK = timedelta(microseconds=KEEP)
PLAIN = AsOf(ON, ("at", "at"), prefix=PREFIX)
ASKED = replace(PLAIN, at="asked", keep=BACK)
WAYS = {
    "plain": PLAIN,
    "inner": replace(PLAIN, how="inner"),
    "asked": ASKED,
    "asked for ever": replace(ASKED, keep=None, how="inner"),
    "correct": replace(PLAIN, keep=BACK, correct=("v",)),
    "correct asked": replace(ASKED, correct=("v",)),
}
ways = pytest.mark.parametrize("way", WAYS)


def event(row: Row) -> Row:
    """A left row that asks for a time up to 15 before it, or after it, or for none."""
    back = row["v"] * 7 + len(row["k"] or "") - 4
    asked = None if row["at"] is None or back == 11 else row["at"] - back
    return {"k": row["k"], "x": row["x"], "v": row["v"], "asked": asked, "at": row["at"]}


def version(row: Row) -> Row:
    deleted = {0: False, 1: None, 2: True}[row["w"]]
    return {"k": row["k"], "y": row["y"], "w": row["w"], "_deleted": deleted, "at": row["at"]}


EVENTS, VERSIONS = LEFTS.map(event), RIGHTS.map(version)
ANY = twins(EVENTS, VERSIONS) | twins(one_key(LEFTS).map(event), one_key(RIGHTS).map(version))


def numbered(steps: list[Twin]) -> list[Twin]:
    """The steps with events that can be told apart."""
    count = itertools.count()
    return [replace(step, left=[{**row, "v": next(count)} for row in step.left]) for step in steps]


def left(at: int | None, v: int = 0, k: str | None = "a", asked: int | None = 0) -> Row:
    return {"k": k, "x": 0.0, "v": v, "asked": asked, "at": at}


def right(at: int | None, w: int = 0, k: str | None = "a", deleted: bool = False) -> Row:
    return {"k": k, "y": 0.0, "w": w, "_deleted": deleted, "at": at}


def late_left(row: Row, clock: int, way: AsOf) -> bool:
    if row["at"] is None or row["at"] < clock:
        return True
    if way.at is None:
        return False
    return row["asked"] is None or (way.keep is not None and row["asked"] < row["at"] - KEEP)


def late_right(row: Row, clock: int, way: AsOf) -> bool:
    return row["at"] is None or row["at"] < clock - (KEEP if way.correct and clock != NEVER else 0)


def judged(steps: list[Twin], way: AsOf) -> tuple[list[Twin], list[Row], list[Row]]:
    good = [
        replace(
            step,
            left=[row for row in step.left if not late_left(row, step.clock, way)],
            right=[row for row in step.right if not late_right(row, step.clock, way)],
        )
        for step in steps
    ]
    lefts = [row for step in steps for row in step.left if late_left(row, step.clock, way)]
    return good, lefts, [row for step in steps for row in step.right if late_right(row, step.clock, way)]


def found(one: Row, rights: list[Row], way: AsOf) -> Row | None:
    asked = one["at"] if way.at is None else min(one["asked"], one["at"])
    key = met(one, ("k", "x"))
    past = [
        other
        for other in rights
        if other["at"] <= asked and key is not None and met(other, ("k", "y")) == key
    ]
    newest = max(past, key=lambda other: (other["at"], rank(other)), default=None)
    return None if newest is None or newest["_deleted"] else newest


def expected(lefts: list[Row], rights: list[Row], way: AsOf, clock: int) -> list[Row]:
    ripe = sorted((one for one in lefts if one["at"] < clock), key=lambda one: (one["at"], rank(one)))
    pairs = [(one, found(one, rights, way)) for one in ripe]
    return [
        {**one, "w": other and other["w"], "version_at": other and other["at"]}
        for one, other in pairs
        if other is not None or way.how == "left"
    ]


def rows_of(steps: list[Twin]) -> tuple[list[Row], list[Row]]:
    return [row for step in steps for row in step.left], [row for step in steps for row in step.right]


def last(rows: list[Row]) -> list[Row]:
    """The last of each event's results, without its revision."""
    shown = {row["v"]: {name: row[name] for name in row if name != "revision"} for row in rows}
    return list(shown.values())


@ways
@examples(40)
@given(ANY)
def test_after_every_step_all_has_come_out_that_the_oracle_gives(way: str, steps: list[Twin]) -> None:
    operator = WAYS[way]
    steps = numbered(steps) if operator.correct else steps
    played = FIELD.play(operator, steps)
    good, *late = judged(steps, operator)
    out: list[Row] = []
    for number, step in enumerate(played.steps):
        out += listed(step.out)
        told = expected(*rows_of(good[: number + 1]), operator, steps[number].clock)
        assert sorted(texts(last(out) if operator.correct else out)) == sorted(texts(told))
    assert list(map(texts, FIELD.late(played.steps))) == list(map(texts, late))
    assert sum(map(len, rows_of(good))) + sum(map(len, late)) == sum(map(len, rows_of(steps)))


@examples(40)
@given(ANY)
def test_each_correction_is_one_and_counts(steps: list[Twin]) -> None:
    played = FIELD.play(WAYS["correct"], numbered(steps))
    known: dict[int, Row] = {}
    for row in played.out:
        before = known.get(row["v"])
        assert row["revision"] == (0 if before is None else before["revision"] + 1)
        known[row["v"]] = row
    for step in played.steps:
        assert len(last(listed(step.out))) == len(step.out)


@ways
@examples(25)
@given(st.lists(EVENTS, max_size=12), st.lists(VERSIONS, max_size=12), st.data())
def test_a_batch_gives_what_the_steps_give_to_the_byte_whatever_the_order(
    way: str, lefts: list[Row], rights: list[Row], data: st.DataObject
) -> None:
    clock = data.draw(st.sampled_from([-5, 10, 20, FOREVER]))
    played = FIELD.play(WAYS[way], [*data.draw(splits(lefts, rights)), Twin([], [], clock)])
    assert texts(FIELD.batch(WAYS[way], lefts, rights, clock)) == texts(played.out)


@ways
@examples(25)
@given(ANY)
def test_a_batch_without_the_late_rows_gives_what_the_stream_shows(way: str, steps: list[Twin]) -> None:
    operator = WAYS[way]
    steps = numbered(steps)
    good = rows_of(judged(steps, operator)[0])
    batch = FIELD.batch(operator, *good, steps[-1].clock)
    assert sorted(texts(last(batch))) == sorted(texts(last(FIELD.play(operator, steps).out)))


@pytest.mark.slow
@ways
@examples(25)
@given(ANY)
def test_restarts_change_no_byte_of_what_comes_out(way: str, steps: list[Twin]) -> None:
    smooth = [Twin(step.left, step.right, step.clock) for step in steps]
    one, other = FIELD.play(WAYS[way], steps), FIELD.play(WAYS[way], smooth)
    assert [texts(listed(step.out)) for step in one.steps] == [texts(listed(s.out)) for s in other.steps]


@pytest.mark.slow
@ways
@examples(25)
@given(ANY)
def test_no_row_comes_out_from_before_what_was_promised(way: str, steps: list[Twin]) -> None:
    played = FIELD.play(WAYS[way], steps)
    for before, step in zip(steps, played.steps[1:], strict=False):
        assert all(row["at"] >= WAYS[way].output_watermark(before.clock) for row in listed(step.out))


def shown(operator: AsOf, steps: list[Twin]) -> list[tuple[int, int | None, int | None]]:
    return [(row["at"], row["w"], row["version_at"]) for row in FIELD.play(operator, steps).out]


def test_an_event_has_the_version_that_was_valid_at_its_time() -> None:
    rights = [right(5, 1), right(9, 2), right(20, 3, deleted=True)]
    lefts = [left(4), left(5), left(8), left(9), left(19), left(20), left(21)]
    told = [(4, None, None), (5, 1, 5), (8, 1, 5), (9, 2, 9), (19, 2, 9), (20, None, None), (21, None, None)]
    assert shown(PLAIN, [Twin(lefts, rights, NEVER), Twin([], [], FOREVER)]) == told
    assert (
        shown(replace(PLAIN, how="inner"), [Twin(lefts, rights, NEVER), Twin([], [], FOREVER)]) == told[1:5]
    )


def test_an_event_waits_until_the_clock_is_after_it() -> None:
    state = PLAIN.initial_state(FIELD.schema)
    PLAIN.step(state, FIELD.sent([left(5)], []), 5)
    assert PLAIN.next_timer(state) == 6
    assert len(PLAIN.step(state, FIELD.sent([], [right(5, 1)]), 5).out) == 0
    assert listed(PLAIN.step(state, FIELD.sent([], []), 6).out)[0]["w"] == 1
    assert PLAIN.next_timer(state) is None


def test_a_late_version_is_not_used_not_even_for_later_events() -> None:
    steps = [
        Twin([left(5)], [right(1, 1)], NEVER),
        Twin([left(20)], [right(4, 2)], 10),
        Twin([], [], FOREVER),
    ]
    assert shown(PLAIN, steps) == [(5, 1, 1), (20, 1, 1)]


def test_a_late_version_corrects_the_events_from_its_time_to_the_next_version() -> None:
    lefts = [left(at, at) for at in (3, 4, 5, 9, 10, 11)]
    steps = [
        Twin(lefts, [right(1, 1), right(10, 2)], NEVER),
        Twin([], [], 12),
        Twin([], [right(4, 3)], 12),
        Twin([], [right(5, 4, deleted=True)], 14, "snapshot"),
        Twin([], [right(3, 5)], 14),
    ]
    played = FIELD.play(WAYS["correct"], steps)
    rows = [[(r["at"], r["w"], r["revision"]) for r in listed(step.out)] for step in played.steps]
    assert rows[1] == [(3, 1, 0), (4, 1, 0), (5, 1, 0), (9, 1, 0), (10, 2, 0), (11, 2, 0)]
    assert rows[2:4] == [[(4, 3, 1), (5, 3, 1), (9, 3, 1)], [(5, None, 2), (9, None, 2)]]
    assert rows[4] == [], "it is more than is kept before the clock"
    assert len(FIELD.late(played.steps)[1]) == 1


def test_the_same_version_once_more_corrects_nothing() -> None:
    steps = [Twin([left(5)], [right(1, 1)], NEVER), Twin([], [], 6), Twin([], [right(1, 1)], 7)]
    assert [len(step.out) for step in FIELD.play(WAYS["correct"], steps).steps] == [0, 1, 0]


def test_an_event_may_ask_for_a_time_before_it_and_for_none_after_it() -> None:
    rights = [right(10, 1), right(14, 2), right(30, 3)]
    lefts = [left(20, asked=10), left(20, asked=13), left(20, asked=40), left(21, asked=10)]
    played = FIELD.play(ASKED, [Twin(lefts, rights, NEVER), Twin([], [], FOREVER)])
    assert [(row["asked"], row["w"]) for row in played.out] == [(10, 1), (13, 1), (40, 2)]
    assert FIELD.late(played.steps)[0] == [left(21, asked=10)]


def test_what_was_replaced_before_the_clock_is_left_out_of_memory_and_runs() -> None:
    state = PLAIN.initial_state(FIELD.schema)
    for step in range(50):
        rows = [right(step * 10 + n // 10, n, k=f"k{n % 10}") for n in range(100)]
        PLAIN.step(state, FIELD.sent([], rows), step * 10)
    assert len(state.versions) < 600
    PLAIN.step(state, FIELD.sent([], [right(501, k=f"k{n}", deleted=True) for n in range(5)]), 500)
    PLAIN.step(state, FIELD.sent([], []), 502)
    memory = PLAIN.memory(state)
    assert memory is not None
    memory.save(TablesInMemory(), Limits(0, 0, 1 << 20))
    assert 5 <= len(state.versions) <= 6, "the newest of each key; no deletion, but of the first key perhaps"


@ways
@examples(15)
@given(steps=ANY)
def test_keys_that_share_half_of_their_hashes_are_told_apart(way: str, steps: list[Twin]) -> None:
    smooth = FIELD.play(WAYS[way], steps)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrivals, "hashed_groups", half_alike)
        alike = FIELD.play(WAYS[way], steps)
    assert [texts(listed(step.out)) for step in alike.steps] == [texts(listed(s.out)) for s in smooth.steps]


def test_events_that_cannot_be_corrected_any_more_are_given_back() -> None:
    operator = WAYS["correct"]
    state = operator.initial_state(FIELD.schema)
    for step in range(40):
        rows = [left(step * 100, n, k=f"{step}-{n}") for n in range(200)]
        operator.step(state, FIELD.sent(rows, []), step * 100)
        assert len(state.done) <= 200


def test_a_step_costs_by_its_rows_and_not_by_those_that_are_held(monkeypatch: pytest.MonkeyPatch) -> None:
    operator, files = WAYS["correct"], TablesInMemory()
    state = operator.initial_state(FIELD.schema)
    names = [f"k{n}" for n in range(10_000)]
    operator.step(state, FIELD.sent([left(9, 1, k) for k in names], [right(5, 1, k) for k in names]), NEVER)
    assert len(operator.step(state, FIELD.sent([], []), 10).out) == 10_000
    memory = operator.memory(state)
    assert memory is not None
    state = reopened(operator, FIELD.schema, memory.save(files, SPILLED), files)
    taken: list[int] = []
    take = Entries.take
    monkeypatch.setattr(Entries, "take", lambda self, at: taken.append(len(at)) or take(self, at))
    monkeypatch.setattr(SortedRuns, "all", None)
    step = operator.step(state, FIELD.sent([left(11, 2, "k7")], [right(6, 2, "k9")]), 10)
    assert [(row["k"], row["w"], row["revision"]) for row in listed(step.out)] == [("k9", 2, 1)]
    assert sum(taken) < 100


def test_events_that_may_be_corrected_go_at_wake_though_nothing_comes() -> None:
    operator = WAYS["correct"]
    state = operator.initial_state(FIELD.schema)
    operator.step(state, FIELD.sent([left(5)], []), NEVER)
    operator.step(state, FIELD.sent([], []), 6)
    assert (operator.next_timer(state), len(state.done)) == (16, 1)
    operator.step(state, FIELD.sent([], []), 16)
    assert (operator.next_timer(state), len(state.done)) == (None, 0)


def test_the_output_has_the_time_of_the_version_and_no_sign_of_deletion() -> None:
    assert PLAIN.output_schema(FIELD.schema).names == ["k", "x", "v", "asked", "at", "w", "version_at"]
    correct = WAYS["correct"]
    assert correct.output_schema(FIELD.schema).names[-2:] == ["version_at", "revision"]
    assert (correct.identity, correct.uncompared_columns) == (("v",), ("revision",))
    assert (PLAIN.identity, PLAIN.uncompared_columns) == ((), ())


def test_columns_that_are_not_there_are_refused() -> None:
    with pytest.raises(UsageError, match='as_of finds no column "aksed"'):
        replace(PLAIN, at="aksed").output_schema(FIELD.schema)
    with pytest.raises(UsageError, match='as_of finds no column "id"'):
        replace(WAYS["correct"], correct=("id",)).output_schema(FIELD.schema)
    taken = Field(parse("k STRING, x DOUBLE, revision INT, at TIMESTAMP"), FIELD.right, ON)
    with pytest.raises(UsageError, match='as_of has two columns "revision"'):
        replace(WAYS["correct"], correct=("k",)).output_schema(taken.schema)


def test_an_operator_can_be_sent_to_a_worker() -> None:
    assert pickle.loads(pickle.dumps(ASKED)) == ASKED


@pytest.mark.slow
@examples(6)
@given(st.integers(0, 2**32), st.sampled_from(["plain", "correct"]))
def test_many_rows_in_many_steps_give_what_the_oracle_gives(seed: int, way: str) -> None:
    """Runs are merged, and memory is tidied, only where there are many rows."""
    draw, operator = np.random.default_rng(seed), WAYS[way]
    operator = replace(operator, pairing=pairing("join", "k"))
    field = Field(FIELD.left, FIELD.right, operator.pairing)
    steps = []
    for number in range(30):

        def some(make: Any, number: int = number) -> list[Row]:
            at = number * 10 + draw.integers(-6, 15, 60)
            return [
                make(int(a), int(w), f"k{k}")
                for a, w, k in zip(at, draw.integers(0, 5, 60), draw.integers(0, 40, 60), strict=True)
            ]

        rights = [{**row, "_deleted": row["w"] == 0} for row in some(right)]
        steps.append(Twin(some(left), rights, number * 10, draw.choice([None, None, "chunks", "snapshot"])))
    steps = [*numbered(steps), Twin([], [], FOREVER)]
    lefts, rights = rows_of(judged(steps, operator)[0])
    by_key: dict[str, list[Row]] = {}
    for row in rights:
        by_key.setdefault(row["k"], []).append({**row, "y": 0.0})
    told = [row for one in lefts for row in expected([one], by_key.get(one["k"], []), operator, FOREVER)]
    assert sorted(texts(last(field.play(operator, steps).out))) == sorted(texts(map(with_y, told)))


def with_y(row: Row) -> Row:
    """A row of a join by one column has the other one of the right too."""
    y = None if row["version_at"] is None else 0.0
    return {name: row[name] for name in ("k", "x", "v", "asked", "at")} | {
        "y": y,
        "w": row["w"],
        "version_at": row["version_at"],
    }


def test_an_end_at_the_floor_is_remembered_for_a_version_of_the_same_time() -> None:
    steps = [
        Twin([left(13)], [right(13, w=2, deleted=True)], clock=1),
        Twin([], [], clock=23),
        Twin([], [right(13, w=0)], clock=23, restart="snapshot"),
    ]
    played = FIELD.play(WAYS["correct"], steps)
    assert [(row["w"], row["revision"]) for row in played.out] == [(None, 0)]
