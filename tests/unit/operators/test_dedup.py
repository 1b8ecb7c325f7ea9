"""Dedup against an oracle that compares each row with all before it."""

from __future__ import annotations

from datetime import timedelta

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.errors import UsageError
from headwater.operators.dedup import Dedup
from headwater.operators.event_time import FOREVER, NEVER
from headwater.operators.operator import run
from soaking import examples
from unit.operators.stepping import (
    ROWS,
    SCHEMA,
    Move,
    Row,
    TablesInMemory,
    in_one,
    key,
    listed,
    moves,
    play,
    splits,
    table,
    texts,
)

ON = ("k", "x")
WITHIN = 5
DEDUP = Dedup(on=ON, within=timedelta(microseconds=WITHIN), event_time="at")


def row(at: int | None, k: str = "a") -> Row:
    return {"k": k, "x": None, "v": 0, "tags": None, "at": at}


def times(rows: list[Row]) -> list[int]:
    return [row["at"] for row in rows]


def expected(steps: list[Move]) -> tuple[list[Row], list[Row], int]:
    passed: list[Row] = []
    late: list[Row] = []
    duplicates = 0
    for move in steps:
        for new in move.rows:
            if new["at"] is None or new["at"] < move.clock - WITHIN:
                late.append(new)
            elif any(key(new, ON) == key(old, ON) and abs(new["at"] - old["at"]) < WITHIN for old in passed):
                duplicates += 1
            else:
                passed.append(new)
    return passed, late, duplicates


@examples(120)
@given(moves() | moves(ROWS.map(lambda row: {**row, "k": None, "x": row["x"] and 0.0})))
def test_any_split_clock_and_restart_gives_what_the_oracle_gives(steps: list[Move]) -> None:
    played = play(DEDUP, steps)
    passed, late, duplicates = expected(steps)
    assert texts(played.out) == texts(passed)
    assert texts(played.late) == texts(late)
    assert played.duplicates == duplicates
    assert len(passed) + len(late) + duplicates == sum(len(move.rows) for move in steps)


@examples(100)
@given(st.lists(ROWS, max_size=30), st.data())
def test_a_batch_gives_what_the_steps_give(rows: list[Row], data: st.DataObject) -> None:
    steps = data.draw(splits(rows))
    together = [new for move in steps for new in move.rows]
    batch = run(DEDUP, table(together), FOREVER)
    assert texts(listed(pa.concat_tables([step.out for step in batch]))) == texts(play(DEDUP, steps).out)


@examples(100)
@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 4), st.integers(1, 3))), st.data())
def test_of_exact_copies_one_is_passed_on_whatever_the_order(
    clusters: list[tuple[str, int, int]], data: st.DataObject
) -> None:
    copies = [row(at * 2 * WITHIN, k) for k, at, count in clusters for _ in range(count)]
    played = play(DEDUP, data.draw(splits(copies)))
    assert sorted(texts(played.out)) == sorted(set(texts(copies)))


def test_the_first_to_arrive_is_passed_on_also_when_it_is_newer() -> None:
    assert times(play(DEDUP, in_one([row(9), row(7), row(5), row(4)])).out) == [9, 4]


def test_exactly_within_away_is_no_duplicate() -> None:
    assert times(play(DEDUP, in_one([row(10), row(15), row(5), row(14), row(6)])).out) == [10, 15, 5]


@pytest.mark.parametrize("known", [2, 5, 7, 10, 12])
def test_a_known_row_shadows_all_that_are_less_than_within_away(known: int) -> None:
    for at in range(known - 9, known + 10):
        played = play(DEDUP, [Move([row(known)], NEVER), Move([row(at)], NEVER)])
        assert played.duplicates == (abs(at - known) < WITHIN)


def test_a_row_between_two_that_were_passed_on_is_a_duplicate_of_either() -> None:
    assert times(play(DEDUP, [Move([row(2), row(9)], NEVER), Move([row(6), row(5)], NEVER)]).out) == [2, 9]


def test_a_row_without_a_time_is_late() -> None:
    played = play(DEDUP, in_one([row(None), row(1)]))
    assert times(played.late) == [None]
    assert times(played.out) == [1]


def test_a_copy_may_come_until_the_clock_is_within_ahead() -> None:
    played = play(DEDUP, [Move([row(10)], NEVER), Move([row(10)], 15), Move([row(10)], 16)])
    assert (len(played.out), played.duplicates, len(played.late)) == (1, 1, 1)


def test_what_has_expired_is_not_held() -> None:
    seconds = [row(second * 1_000_000, f"k{second}") for second in range(1000)]
    dedup = Dedup(on=("k",), within=timedelta(seconds=10), event_time="at")
    moves = [Move([each], each["at"] - 1) for each in seconds]
    state = play(dedup, moves).state
    assert 21 <= len(state.spans.runs.all()) <= 31  # spans of ten seconds


def test_memory_shrinks_at_wake_though_nothing_comes() -> None:
    state = DEDUP.initial_state(SCHEMA)
    DEDUP.step(state, table([row(1), row(8), row(23)]), NEVER)
    left = []
    while (timer := DEDUP.next_timer(state)) is not None:
        DEDUP.step(state, table([]), timer)
        left.append((timer, len(state.spans)))
    assert left == [(14, 2), (19, 1), (34, 0)]


def test_a_step_that_learns_nothing_stores_nothing() -> None:
    state, files, stored = DEDUP.initial_state(SCHEMA), TablesInMemory(), []
    for rows in ([row(1)], [row(1), row(None)]):
        DEDUP.step(state, table(rows), NEVER)
        stored.append(DEDUP.memory(state).save(files))
    assert stored[0].stretches and stored[0] == stored[1]


def test_the_event_time_may_be_part_of_the_key() -> None:
    dedup = Dedup(on=("k", "at"), within=timedelta(seconds=1), event_time="at")
    played = play(dedup, [Move([row(1), row(1), row(2)], NEVER), Move([row(2)], NEVER, "snapshot")])
    assert times(played.out) == [1, 2]


def test_unknown_columns_and_wrong_times_are_refused() -> None:
    with pytest.raises(UsageError, match='dedup finds no column "kk"') as caught:
        Dedup(("kk",), timedelta(1), "at").output_schema(
            pa.schema([("kkk", pa.string()), ("at", pa.int64())])
        )
    assert caught.value.hint == 'did you mean "kkk"?'
    with pytest.raises(UsageError, match='cannot take column "v" as the event time'):
        Dedup(("k",), timedelta(1), "v").output_schema(SCHEMA)
    assert DEDUP.output_schema(SCHEMA) == SCHEMA
    assert DEDUP.key == ON
