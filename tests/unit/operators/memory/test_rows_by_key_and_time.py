"""Rows by key and time against lists that are gone through from end to end."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from headwater.operators.event_time import FOREVER
from headwater.operators.memory.key_hash import NO_KEY, KeyHashes
from headwater.operators.memory.rows_by_key_and_time import RowsByKeyAndTime
from headwater.operators.memory.sorted_runs import Limits
from soaking import examples
from unit.operators.stepping import LOGGED, SPILLED, TablesInMemory

SCHEMA = pa.schema([("id", pa.int64()), ("_low", pa.string())])
KEYS = st.sampled_from([(0, 1), (0, 2), (1, 1), (7, 0), (0, NO_KEY)])
"""Some share their first half; one is equal to none."""
ROWS = st.lists(st.tuples(KEYS, st.integers(-4, 9)), max_size=12)
ASKED = st.lists(st.tuples(KEYS, st.integers(-6, 11), st.integers(-6, 11)), max_size=8)


class Held(NamedTuple):
    """A row, its number included, as the model has it."""

    key: tuple[int, int]
    at: int
    number: int


def keys(some: list[tuple[int, int]]) -> KeyHashes:
    return KeyHashes(*(np.array([key[place] for key in some], np.int64) for place in range(2)))


def numbers(some: list[int]) -> Any:
    return np.array(some, np.int64)


def table(ids: list[int]) -> pa.Table:
    return pa.table([ids, [f"row {each}" for each in ids]], schema=SCHEMA)


def restarted(rows: RowsByKeyAndTime, limits: Limits, files: TablesInMemory) -> RowsByKeyAndTime:
    again = RowsByKeyAndTime(SCHEMA)
    again.runs.open(rows.runs.save(files, limits), files)
    again.added = rows.added
    return again


def filled(steps: list[Any]) -> tuple[RowsByKeyAndTime, list[Held]]:
    rows, held, floor = RowsByKeyAndTime(SCHEMA), list[Held](), -9
    files = TablesInMemory()
    for new, before, limits in steps:
        new = [(key, at) for key, at in new if at >= floor]
        first = rows.added
        given = rows.add(
            table([first + n for n in range(len(new))]),
            numbers([at for _, at in new]),
            keys([key for key, _ in new]),
        )
        held += [Held(key, at, number) for (key, at), number in zip(new, given.tolist(), strict=True)]
        floor = max(floor, before)
        rows.drop(floor)
        held = [each for each in held if each.at >= floor]
        rows = rows if limits is None else restarted(rows, limits, files)
    return rows, held


STEPS = st.lists(
    st.tuples(ROWS, st.integers(-5, 5), st.sampled_from([None, None, LOGGED, SPILLED])), max_size=6
)


@examples(120)
@given(STEPS, ASKED)
def test_what_is_found_is_what_was_added_and_not_dropped(steps: list[Any], asked: list[Any]) -> None:
    rows, held = filled(steps)
    of, first, last = (
        keys([a[0] for a in asked]),
        numbers([a[1] for a in asked]),
        numbers([a[2] for a in asked]),
    )
    found = rows.find(of, first, last)
    told = [
        (query, each)
        for query, (key, least, most) in enumerate(asked)
        for each in held
        if key == each.key and key[1] != NO_KEY and least <= each.at <= most
    ]
    assert found.query.tolist() == [query for query, _ in told]
    assert found.numbers.tolist() == [each.number for _, each in told]
    assert found.rows["id"].to_pylist() == [each.number >> 8 for _, each in told]
    assert found.rows["_low"].to_pylist() == [f"row {each.number >> 8}" for _, each in told]
    assert (found.at.tolist(), found.keys.low.tolist()) == (
        [e.at for _, e in told],
        [e.key[1] for _, e in told],
    )
    assert rows.find(of, first, last, "id").rows.column_names == ["id"]


@examples(60)
@given(STEPS, ASKED)
def test_rows_that_are_near_are_told_once_and_none_is_missing(steps: list[Any], asked: list[Any]) -> None:
    rows, held = filled(steps)
    of, first, last = (
        keys([a[0] for a in asked]),
        numbers([a[1] for a in asked]),
        numbers([a[2] for a in asked]),
    )
    near = rows.near(of, first, last).numbers.tolist()
    assert len(near) == len(set(near))
    assert set(rows.find(of, first, last).numbers.tolist()) <= set(near)
    assert set(near) <= {each.number for each in held if each.key[1] != NO_KEY}


@examples(60)
@given(STEPS, st.lists(st.tuples(KEYS, st.integers(-6, 11)), max_size=8))
def test_the_newest_rows_up_to_a_time_and_the_next_time_are_those_of_the_key(
    steps: list[Any], asked: list[Any]
) -> None:
    rows, held = filled(steps)
    of, at = keys([key for key, _ in asked]), numbers([at for _, at in asked])
    mine = [[e for e in held if e.key == key and key[1] != NO_KEY] for key, _ in asked]
    told = set()
    for query, (some, (_, until)) in enumerate(zip(mine, asked, strict=True)):
        newest = max((e.at for e in some if e.at <= until), default=None)
        told |= {(query, e.number) for e in some if e.at == newest}
    found = rows.newest(of, at)
    assert set(zip(found.query.tolist(), found.numbers.tolist(), strict=True)) == told
    later = [
        min((e.at for e in some if e.at > after), default=FOREVER)
        for some, (_, after) in zip(mine, asked, strict=True)
    ]
    assert rows.next(of, at).tolist() == later


@examples(60)
@given(STEPS, st.randoms())
def test_rows_are_taken_in_the_order_that_was_asked_for(steps: list[Any], random: Any) -> None:
    rows, held = filled(steps)
    if not held:
        return
    some = random.choices(held, k=5)
    high, at, number = (
        numbers(each) for each in zip(*((e.key[0], e.at, e.number) for e in some), strict=True)
    )
    assert rows.take(high, at, number)["id"].to_pylist() == (number >> 8).tolist()


def test_a_run_is_given_back_when_the_last_of_its_rows_is_dropped() -> None:
    rows = RowsByKeyAndTime(SCHEMA)
    rows.add(table([0, 1]), numbers([5, 3]), keys([(1, 1), (2, 2)]))
    assert rows.fading() == 5
    rows.drop(5)
    assert (len(rows), len(rows.runs.all())) == (2, 1)
    rows.drop(6)
    assert (len(rows), rows.fading()) == (0, None)


def test_a_stored_run_is_given_back_without_a_look_into_it() -> None:
    rows = RowsByKeyAndTime(SCHEMA)
    rows.add(table([0, 1]), numbers([5, 3]), keys([(1, 1), (2, 2)]))
    rows = restarted(rows, SPILLED, TablesInMemory())
    assert rows.fading() == 5
    rows.drop(6)
    assert not rows.runs.save(TablesInMemory()).stretches


def test_a_row_at_the_end_of_time_is_found() -> None:
    rows = RowsByKeyAndTime(SCHEMA)
    rows.add(table([0]), numbers([FOREVER]), keys([(1, 1)]))
    assert rows.find(keys([(1, 1)]), numbers([0]), numbers([FOREVER])).rows["id"].to_pylist() == [0]
    assert rows.newest(keys([(1, 1)]), numbers([FOREVER])).rows["id"].to_pylist() == [0]
