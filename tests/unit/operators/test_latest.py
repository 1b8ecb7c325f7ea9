"""Latest against an oracle that sorts all rows of a key."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.errors import UsageError
from headwater.operators.event_time import FOREVER, NEVER
from headwater.operators.latest import Latest
from headwater.operators.operator import run
from soaking import examples
from unit.operators.stepping import (
    ROWS,
    SCHEMA,
    Move,
    Row,
    in_one,
    key,
    listed,
    moves,
    play,
    rank,
    splits,
    table,
    texts,
)

BY = ("k", "x")
LATEST = Latest(by=BY, event_time="at")


def row(at: int | None, v: int = 0, k: str = "a") -> Row:
    return {"k": k, "x": None, "v": v, "tags": None, "at": at}


def newest(rows: list[Row]) -> list[Row]:
    best: dict[object, Row] = {}
    for new in rows:
        if new["at"] is not None:
            old = best.setdefault(key(new, BY), new)
            best[key(new, BY)] = max(old, new, key=lambda r: (r["at"], rank(r)))
    return list(best.values())


def expected(steps: list[Move]) -> list[list[str]]:
    """What each step emits: the newest so far of the keys whose newest has changed."""
    seen: list[Row] = []
    emitted = []
    for move in steps:
        before = set(texts(newest(seen)))
        seen += move.rows
        emitted.append(sorted(set(texts(newest(seen))) - before))
    return emitted


@examples(120)
@given(moves())
def test_any_split_clock_and_restart_gives_what_the_oracle_gives(steps: list[Move]) -> None:
    played = play(LATEST, steps)
    assert [sorted(texts(listed(step.out))) for step in played.steps] == expected(steps)
    rows = [new for move in steps for new in move.rows]
    assert sorted(texts(listed(played.state.rows()))) == sorted(texts(newest(rows)))
    assert texts(played.late) == texts(new for new in rows if new["at"] is None)
    assert played.duplicates == 0


@examples(100)
@given(st.lists(ROWS, max_size=30), st.data())
def test_a_batch_gives_the_last_of_the_steps_whatever_the_order(rows: list[Row], data: st.DataObject) -> None:
    (batch,) = run(LATEST, table(rows), FOREVER)
    state = play(LATEST, data.draw(splits(rows))).state
    assert sorted(texts(listed(batch.out))) == sorted(texts(listed(state.rows())))


def test_within_a_step_only_the_newest_of_a_key_is_emitted() -> None:
    played = play(LATEST, in_one([row(1), row(3), row(2), row(1, k="b")]))
    assert [(new["k"], new["at"]) for new in played.out] == [("a", 3), ("b", 1)]


def test_of_equal_times_the_greatest_row_is_kept_and_a_copy_is_silent() -> None:
    steps = [Move([row(5, v)], NEVER) for v in (2, 1, 3, 3)]
    assert [new["v"] for new in play(LATEST, steps).out] == [2, 3]


def test_an_older_row_is_used_silently_and_changes_nothing() -> None:
    state = LATEST.initial_state(SCHEMA)
    LATEST.step(state, table([row(5)]), NEVER)
    step = LATEST.step(state, table([row(4)]), 100)
    assert (len(step.out), step.late, step.duplicates) == (0, None, 0)
    assert LATEST.next_timer(state) is None


def test_many_keys_replaced_many_times_are_kept_once_each() -> None:
    steps = [Move([row(at, at, f"k{n}") for n in range(300)], NEVER) for at in range(30)]
    state = play(LATEST, steps).state
    assert sorted(texts(listed(state.rows()))) == sorted(texts(steps[-1].rows))


def test_unknown_columns_are_refused() -> None:
    with pytest.raises(UsageError, match='latest finds no column "customr"') as caught:
        Latest(("customr",), "at").output_schema(pa.schema([("customer", pa.string())]))
    assert caught.value.hint == 'did you mean "customer"?'
    with pytest.raises(UsageError, match="no columns to go by"):
        Latest((), "at").output_schema(SCHEMA)
    assert LATEST.output_schema(SCHEMA) == SCHEMA
    assert LATEST.key == BY
