"""Versions of rows against a list that is gone through for every question."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from headwater.operators.event_time import FOREVER
from headwater.operators.memory.numbered_rows import NOWHERE
from headwater.operators.memory.versions import RowVersions
from soaking import examples

SCHEMA = pa.schema([("value", pa.int64()), ("gone", pa.bool_())])
VERSION = st.tuples(st.integers(0, 3), st.integers(0, 9), st.integers(0, 3), st.booleans())
"""The number of a key, how long after the floor, the value, and whether it is an end."""
STEPS = st.lists(st.tuples(st.lists(VERSION, max_size=6), st.integers(0, 5), st.booleans()), max_size=6)
Version = tuple[int, int, int, bool]


def add(versions: RowVersions, some: list[Version]) -> None:
    slots, at = (np.array([each[n] for each in some], np.int64) for n in (0, 1))
    ends = [each[3] for each in some]
    rows = pa.table({"value": [each[2] for each in some], "gone": ends}, schema=SCHEMA)
    versions.add(rows, at, slots, np.array(ends, np.bool_))


def valid(held: list[Version], slot: int, at: int) -> int | None:
    """Return the value that was valid: that of the latest version, and of those the greatest one."""
    mine = [(then, value, gone) for key, then, value, gone in held if key == slot and then <= at]
    _, value, gone = max(mine, default=(0, None, True))
    return None if gone else value


def values(versions: RowVersions, asked: list[tuple[int, int]]) -> list[Any]:
    slots, at = (np.array([each[n] for each in asked], np.int64) for n in (0, 1))
    found: list[Any] = versions.take(versions.valid(slots, at), "value")["value"].to_pylist()
    return found


@examples(40)
@given(STEPS)
def test_the_version_that_was_valid_is_held_for_every_time_from_the_floor_on(steps: list[Any]) -> None:
    versions, held, floor = RowVersions(SCHEMA), list[Version](), 0
    for new, further, tidy in steps:
        some = [(slot, floor + after, value, gone) for slot, after, value, gone in new]
        add(versions, some)
        held += some
        floor += further
        if tidy:
            versions.tidy(floor)
        asked = [(slot, at) for slot in range(5) for at in range(floor, floor + 12)]
        assert values(versions, asked) == [valid(held, *each) for each in asked]
        slots, at = np.array(asked, np.int64).T
        later = [[v[1] for v in held if v[0] == slot and v[1] > then] for slot, then in asked]
        assert versions.next(slots, at).tolist() == [min(times, default=FOREVER) for times in later]


@examples(50)
@given(st.lists(VERSION, max_size=15), st.integers(0, 10))
def test_what_is_valid_since_a_floor_is_what_tidying_leaves(some: list[Version], floor: int) -> None:
    versions = RowVersions(SCHEMA)
    add(versions, some)
    since = versions.since(floor)
    versions.tidy(floor)
    assert versions.since(floor).equals(since)
    assert len(versions) == len(since)


def test_a_version_that_was_replaced_before_the_floor_is_forgotten_and_an_ended_key_with_it() -> None:
    versions = RowVersions(SCHEMA)
    add(versions, [(0, 1, 1, False), (0, 2, 2, False), (1, 1, 3, False), (1, 2, 3, True)])
    versions.tidy(5)
    assert versions.slots().tolist() == [0]
    assert values(versions, [(0, 5), (1, 5)]) == [2, None]


def test_an_end_at_the_floor_is_held_for_a_lesser_version_may_still_come() -> None:
    versions = RowVersions(SCHEMA)
    add(versions, [(0, 1, 1, False), (0, 5, 1, True)])
    versions.tidy(5)
    add(versions, [(0, 5, 0, False)])
    assert values(versions, [(0, 5), (0, 9)]) == [None, None]


def test_a_key_that_is_nowhere_has_no_version() -> None:
    versions = RowVersions(SCHEMA)
    assert versions.valid(np.array([NOWHERE, 0]), np.array([5, 5])).tolist() == [NOWHERE, NOWHERE]
    add(versions, [(0, 1, 1, False)])
    assert versions.valid(np.array([NOWHERE, 0]), np.array([5, 5])).tolist() == [NOWHERE, 0]


def test_it_is_crowded_when_there_are_twice_as_many_as_were_left() -> None:
    versions = RowVersions(SCHEMA)
    add(versions, [(0, at, 0, False) for at in range(1025)])
    assert versions.crowded
    versions.tidy(2000)
    assert not versions.crowded
    versions.rekey(np.array([4]))
    assert values(versions, [(4, 2000), (0, 2000)]) == [0, None]
