"""Lookup against an oracle that is a dict."""

from __future__ import annotations

import pickle
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.errors import UsageError
from headwater.operators.event_time import NEVER
from headwater.operators.joins.lookup import Lookup
from headwater.schema import parse
from soaking import examples
from unit.operators.joins.pairs import LEFTS, ON, PREFIX, RIGHTS, Field, Twin, met, one_key, twins
from unit.operators.stepping import SPILLED, Row, TablesInMemory, listed, texts

FIELD = Field(
    parse("k STRING, x DOUBLE, v BIGINT, at TIMESTAMP"),
    parse("k STRING, y DOUBLE, w BIGINT, at TIMESTAMP, _deleted BOOLEAN"),
    ON,
)
LOOKUP = Lookup(ON, prefix=PREFIX)
ways = pytest.mark.parametrize("how", ["left", "inner"])


def change(row: Row) -> Row:
    return {**row, "_deleted": {0: False, 1: None, 2: True}[row["w"]]}


ANY = twins(LEFTS, RIGHTS.map(change)) | twins(one_key(LEFTS), one_key(RIGHTS).map(change))


def left(v: int = 0, k: str | None = "a") -> Row:
    return {"k": k, "x": 0.0, "v": v, "at": None}


def right(w: int = 0, k: str | None = "a", deleted: bool = False) -> Row:
    return {"k": k, "y": 0.0, "w": w, "at": 7, "_deleted": deleted}


def expected(steps: list[Twin], how: str) -> tuple[list[list[Row]], dict[object, Row]]:
    now: dict[object, Row] = {}
    out: list[list[Row]] = []
    for step in steps:
        for other in step.right:
            now.pop(met(other, ("k", "y")), None)
            if met(other, ("k", "y")) is not None and not other["_deleted"]:
                now[met(other, ("k", "y"))] = other
        found = [(one, now.get(met(one, ("k", "x")))) for one in step.left]
        out.append(
            [
                {**one, "w": other and other["w"], "r_at": other and other["at"]}
                for one, other in found
                if other is not None or how == "left"
            ]
        )
    return out, now


@ways
@examples(100)
@given(ANY)
def test_any_split_and_restart_gives_what_the_oracle_gives(how: str, steps: list[Twin]) -> None:
    played = FIELD.play(replace(LOOKUP, how=how), steps)
    told, now = expected(steps, how)
    assert [texts(listed(step.out)) for step in played.steps] == list(map(texts, told))
    assert sorted(texts(listed(played.state.present.rows()))) == sorted(texts(now.values()))
    assert FIELD.late(played.steps) == ([], [])


@examples(40)
@given(ANY)
def test_a_batch_gives_what_one_step_gives(steps: list[Twin]) -> None:
    lefts, rights = ([row for step in steps for row in side(step)] for side in (_left, _right))
    told, _ = expected([Twin(lefts, rights, NEVER)], "left")
    assert texts(FIELD.batch(LOOKUP, lefts, rights, 10)) == texts(told[0])


def _left(step: Twin) -> list[Row]:
    return step.left


def _right(step: Twin) -> list[Row]:
    return step.right


def found(steps: list[Twin]) -> list[list[int | None]]:
    return [[row["w"] for row in listed(step.out)] for step in FIELD.play(LOOKUP, steps).steps]


def test_the_tables_rows_of_a_step_are_taken_first_and_the_last_counts() -> None:
    assert found([Twin([left()], [right(1), right(2)], NEVER), Twin([left()], [], NEVER)]) == [[2], [2]]


def test_a_deletion_takes_the_row_away_and_another_brings_it_back() -> None:
    steps = [Twin([left()], rows, NEVER) for rows in ([right(1)], [right(deleted=True)], [right(3)])]
    assert found(steps) == [[1], [None], [3]]


def test_memory_of_rows_and_keys_that_are_gone_is_given_back() -> None:
    state, files = LOOKUP.initial_state(FIELD.schema), TablesInMemory()
    for step in range(30):
        keys = [f"{step}-{n}" for n in range(100)]
        LOOKUP.step(state, FIELD.sent([left(k=k) for k in keys], [right(1, k) for k in keys]), NEVER)
        LOOKUP.step(state, FIELD.sent([], [right(0, k, deleted=True) for k in keys[1:]]), NEVER)
        LOOKUP.memory(state).save(files, SPILLED)
    assert len(state.present.rows()) == 30
    assert len(state.present.runs) < 1300
    done = LOOKUP.step(state, FIELD.sent([left(k="7-0"), left(k="7-1")], []), NEVER)
    assert [row["w"] for row in listed(done.out)] == [1, None]


def test_time_alone_changes_nothing_and_results_cannot_be_repeated() -> None:
    state = LOOKUP.initial_state(FIELD.schema)
    LOOKUP.step(state, FIELD.sent([], [right(1)]), NEVER)
    assert LOOKUP.next_timer(state) is None
    assert not LOOKUP.repeatable


def test_the_output_shows_no_sign_of_deletion_and_needs_names_of_its_own() -> None:
    assert LOOKUP.output_schema(FIELD.schema).names == ["k", "x", "v", "at", "w", "r_at"]
    with pytest.raises(UsageError, match='lookup has two columns "at"'):
        replace(LOOKUP, prefix=None).output_schema(FIELD.schema)
    assert pickle.loads(pickle.dumps(LOOKUP)) == LOOKUP


@pytest.mark.slow
@examples(10)
@given(st.integers(0, 2**32))
def test_many_changes_of_many_keys_give_what_the_oracle_gives(seed: int) -> None:
    draw = Random(seed).randrange
    steps = [
        Twin(
            [left(n, f"k{draw(400)}") for n in range(40)],
            [right(n, f"k{draw(step * 20 + 20)}", draw(3) == 0) for n in range(120)],
            NEVER,
            [None, None, "chunks", "snapshot"][draw(4)],
        )
        for step in range(25)
    ]
    played = FIELD.play(LOOKUP, steps)
    assert [texts(listed(step.out)) for step in played.steps] == list(map(texts, expected(steps, "left")[0]))
