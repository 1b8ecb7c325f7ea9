"""Which rows of two sides meet before a step and after it, against two loops."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.operators.memory.indexed_table import UNMET, IndexedRows
from headwater.operators.memory.key_hash import KeyHashes
from headwater.operators.tables.matching import (
    NOBODY,
    Candidates,
    MeetingRows,
    candidates,
    joined_pairs,
    numbered,
)
from soaking import examples

KEY = st.sampled_from([UNMET, 5, 6, 7])


class Row(NamedTuple):
    """A row that was there and is there: its key at each time, None where it is not."""

    was: int | None
    is_: int | None

    @property
    def changed(self) -> bool:
        return self.was != self.is_


SIDE = st.lists(st.builds(Row, st.none() | KEY, st.none() | KEY), max_size=6)


def keyed(rows: list[tuple[int, int, int]]) -> MeetingRows:
    """Rows of an id, a key and an age."""
    ids, keys, ages = (np.array([row[n] for row in rows], np.int64) for n in range(3))
    index = KeyHashes(np.full(len(rows), 3), keys)
    return MeetingRows(IndexedRows(index, ids, ages, pa.table({"id": ids, "age": ages})), keys)


def side(rows: list[Row]) -> Candidates:
    """Rows of which all that were there are found, as those under any key are."""
    was = [(n, row.was, n) for n, row in enumerate(rows) if row.was is not None]
    old = [(n, row.was, n) for n, row in enumerate(rows) if row.changed and row.was is not None]
    put = [(n, row.is_, 100 + n) for n, row in enumerate(rows) if row.changed and row.is_ is not None]
    return candidates(*(keyed(each) for each in (was, old, put)))


def by_hand(left: list[Row], right: list[Row], how: str, after: bool) -> set[tuple[int, int]]:
    """Pairs of ids of which one has changed; rows alone where they have, or another under their key."""
    keys = [[(row.is_ if after else row.was) for row in rows] for rows in (left, right)]
    there = [{n: key for n, key in enumerate(some) if key is not None} for some in keys]
    changed = [[key for row in rows if row.changed for key in row] for rows in (left, right)]
    touched = [set(some) - {None, UNMET} for some in changed]
    found = {
        (a, b)
        for a, mine in there[0].items()
        for b, other in there[1].items()
        if mine == other != UNMET and (left[a].changed or right[b].changed)
    }
    for number, hows in ((0, ("left", "full")), (1, ("right", "full"))):
        for n, key in there[number].items() if how in hows else ():
            met = key != UNMET and key in there[1 - number].values()
            if not met and ((left, right)[number][n].changed or key in touched[1 - number]):
                found.add((n, -1) if number == 0 else (-1, n))
    return found


def test_keys_are_numbered_in_order_and_one_that_meets_none_has_no_number() -> None:
    parts = [KeyHashes(np.array([4, 3, 4]), np.array([7, UNMET, 6])), KeyHashes(np.array([4]), np.array([7]))]
    index, numbers = numbered(parts)
    assert [each.tolist() for each in index] == [[3, 4, 4], [UNMET, 6, 7]]
    assert [each.tolist() for each in numbers] == [[2, NOBODY, 1], [2]]


@pytest.mark.parametrize("how", ["inner", "left", "right", "full"])
@examples(100)
@given(left=SIDE, right=SIDE)
def test_the_results_that_a_step_touches_are_told_as_they_were_and_as_they_are(
    how: str, left: list[Row], right: list[Row]
) -> None:
    one, other = side(left), side(right)
    numbers: dict[int, tuple[int, int]] = {}
    for after in (False, True):
        moments = (one.after, other.after) if after else (one.before, other.before)
        pairs = joined_pairs(*moments, how)
        mine, others = one.take(pairs.left), other.take(pairs.right)
        ids = [table["id"].fill_null(-1).to_pylist() for table in (mine, others)]
        told = list(zip(*ids, strict=True))
        assert len(told) == len(set(told))
        assert set(told) == by_hand(left, right, how, after)
        ages = [table["age"].fill_null(-1).to_pylist() for table in (mine, others)]
        assert list(zip(*ages, strict=True)) == sorted(zip(*ages, strict=True))
        for pair, number in zip(told, pairs.numbers.tolist(), strict=True):
            assert numbers.setdefault(number, pair) == pair
    assert len(set(numbers.values())) == len(numbers)
