"""Versions of rows against a list that is gone through for every question."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.operators.event_time import FOREVER
from headwater.operators.memory.key_hash import NO_KEY, KeyHashes
from headwater.operators.memory.sorted_runs import Limits
from headwater.operators.memory.versions import NOWHERE, RowVersions
from soaking import examples
from unit.operators.stepping import LOGGED, SPILLED, TablesInMemory

SCHEMA = pa.schema([("value", pa.int64()), ("gone", pa.bool_())])
VERSION = st.tuples(st.integers(0, 3), st.integers(0, 9), st.integers(0, 3), st.booleans())
"""The number of a key, how long after the floor, the value, and whether it is an end."""
ONE_PART = Limits(0, 0, 1 << 20)
RESTARTS = st.sampled_from([None, None, LOGGED, SPILLED, ONE_PART])
STEPS = st.lists(st.tuples(st.lists(VERSION, max_size=6), st.integers(0, 5), RESTARTS), max_size=8)
Version = tuple[int, int, int, bool]


def hashed(numbers: list[int], alike: bool) -> KeyHashes:
    """Keys that share their first halves, or not."""
    low = np.array(numbers, np.int64)
    return KeyHashes(low * 0 if alike else 7 * low, low)


def add(versions: RowVersions, some: list[Version], alike: bool = False) -> None:
    ends = [each[3] for each in some]
    rows = pa.table({"value": [each[2] for each in some], "gone": ends}, schema=SCHEMA)
    keys = hashed([each[0] for each in some], alike)
    versions.add(rows, np.array([each[1] for each in some], np.int64), keys, np.array(ends, np.bool_))


def valid(held: list[Version], key: int, at: int) -> int | None:
    """Return the value that was valid: that of the latest version, and of those the greatest one."""
    mine = [(then, value, gone) for of, then, value, gone in held if of == key and then <= at]
    _, value, gone = max(mine, default=(0, None, True))
    return None if gone else value


def values(versions: RowVersions, asked: list[tuple[int, int]], alike: bool = False) -> list[Any]:
    keys, at = hashed([key for key, _ in asked], alike), np.array([at for _, at in asked], np.int64)
    found = versions.valid(keys, at)
    told: list[Any] = found.rows["value"].to_pylist()
    assert [number == NOWHERE for number in found.numbers.tolist()] == [value is None for value in told]
    return told


def restarted(versions: RowVersions, limits: Limits, files: TablesInMemory | None = None) -> RowVersions:
    files, again = files or TablesInMemory(), RowVersions(SCHEMA)
    again.held.runs.open(versions.held.runs.save(files, limits), files)
    again.held.added, again.floor = versions.held.added, versions.floor
    return again


@pytest.mark.parametrize("alike", [False, True])
@examples(80)
@given(steps=STEPS)
def test_the_version_that_was_valid_is_held_for_every_time_from_the_floor_on(
    alike: bool, steps: list[Any]
) -> None:
    files = TablesInMemory()
    versions, held, floor = RowVersions(SCHEMA), list[Version](), 0
    for new, further, limits in steps:
        some = [(key, floor + after, value, gone) for key, after, value, gone in new]
        add(versions, some, alike)
        held += some
        versions.floor = floor = floor + further
        versions = versions if limits is None else restarted(versions, limits, files)
        asked = [(key, at) for key in range(5) for at in range(floor, floor + 12)]
        assert values(versions, asked, alike) == [valid(held, *each) for each in asked]
        keys, at = hashed([key for key, _ in asked], alike), np.array([at for _, at in asked], np.int64)
        later = [[v[1] for v in held if v[0] == key and v[1] > then] for key, then in asked]
        assert versions.next(keys, at).tolist() == [min(times, default=FOREVER) for times in later]


def test_a_version_that_was_replaced_before_the_floor_goes_and_an_ended_key_with_it() -> None:
    versions = RowVersions(SCHEMA)
    add(versions, [(0, 1, 1, False), (0, 2, 2, False), (1, 1, 3, False), (1, 2, 3, True)])
    versions.floor = 5
    versions = restarted(versions, ONE_PART)
    assert len(versions) == 1
    assert values(versions, [(0, 5), (1, 5)]) == [2, None]


def test_versions_of_one_time_are_one_when_they_are_merged() -> None:
    versions = RowVersions(SCHEMA)
    for value in (2, 3, 3, 1):
        add(versions, [(0, 5, value, False)])
    (number,) = versions.valid(hashed([0], False), np.array([9])).numbers.tolist()
    assert number >> 8 == 1, "of equal ones the first"
    versions = restarted(versions, ONE_PART)
    assert (len(versions), values(versions, [(0, 9)])) == (1, [3])
    assert versions.valid(hashed([0], False), np.array([9])).numbers.tolist() == [number]


def test_an_end_covers_what_lies_in_an_older_run() -> None:
    versions, files = RowVersions(SCHEMA), TablesInMemory()
    add(versions, [(key, 1, 1, False) for key in range(4)] * 9)
    versions.held.runs.save(files, ONE_PART)
    add(versions, [(key, 2, 1, True) for key in range(4)])
    versions.floor = 5
    versions.held.runs.save(files, ONE_PART)
    assert values(versions, [(key, 5) for key in range(4)]) == [None] * 4


def test_an_end_at_the_floor_is_held_for_a_lesser_version_may_still_come() -> None:
    versions = RowVersions(SCHEMA)
    add(versions, [(0, 1, 1, False), (1, 1, 1, False), (1, 5, 1, True)])
    versions.floor = 5
    versions = restarted(versions, ONE_PART)
    add(versions, [(1, 5, 0, False)])
    assert values(versions, [(1, 5), (1, 9)]) == [None, None]


def test_a_key_that_is_equal_to_none_has_no_version() -> None:
    versions = RowVersions(SCHEMA)
    asked = KeyHashes(np.array([0, 0]), np.array([NO_KEY, 0]))
    assert versions.valid(asked, np.array([5, 5])).numbers.tolist() == [NOWHERE, NOWHERE]
    add(versions, [(0, 1, 1, False)])
    none, number = versions.valid(asked, np.array([5, 5])).numbers.tolist()
    assert (none, number >> 8) == (NOWHERE, 0)
