"""Changes of a table: which one of a key is the last, and which rows are equal."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.operators.memory.key_hash import hashes
from headwater.operators.memory.row_by_key import FoundRows
from headwater.operators.table_changes import effective, identical, last

FLOATS = st.none() | st.sampled_from([0.0, -0.0, 1.5, float("nan"), float("inf")])
COLUMNS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "float": (pa.float64(), FLOATS),
    "text": (pa.string(), st.none() | st.sampled_from(["", "a"])),
    "list": (pa.list_(pa.float64()), st.none() | st.lists(FLOATS, max_size=3)),
    "lists": (
        pa.list_(pa.list_(pa.int64())),
        st.none() | st.lists(st.none() | st.lists(st.just(1), max_size=2)),
    ),
    "struct": (pa.struct([("x", pa.float64())]), st.none() | st.builds(lambda x: {"x": x}, FLOATS)),
    "bool": (pa.bool_(), st.none() | st.booleans()),
    "binary": (pa.binary(), st.none() | st.binary(max_size=1)),
}


@pytest.mark.parametrize("name", COLUMNS)
@given(data=st.data())
def test_rows_are_the_same_when_they_read_the_same(name: str, data: st.DataObject) -> None:
    kind, some = COLUMNS[name]
    pairs = data.draw(st.lists(st.tuples(some, some), max_size=12))
    left, right = (pa.table({"v": pa.array([pair[side] for pair in pairs], kind)}) for side in (0, 1))
    assert identical(left, right).tolist() == [repr(a) == repr(b) for a, b in pairs]


@given(st.lists(st.tuples(st.integers(0, 3), st.none() | st.booleans())))
def test_the_last_change_of_each_key_is_found_in_the_order_of_arrival(changes: list[tuple[int, Any]]) -> None:
    keys, deleted = [key for key, _ in changes], [flag for _, flag in changes]
    rows = pa.table({"id": pa.array(keys, pa.int64()), "_deleted": pa.array(deleted, pa.bool_())})
    found = last(rows, ("id",))
    newest = sorted({key: place for place, key in enumerate(keys)}.items(), key=lambda each: each[1])
    assert [(keys[place], place) for place in found.indices.tolist()] == newest
    hashed = hashes([pa.array([key for key, _ in newest], pa.int64())], len(newest))
    assert [half.tolist() for half in found.keys] == [half.tolist() for half in hashed]
    assert found.deleted.tolist() == [bool(deleted[place]) for _, place in newest]


def test_a_row_as_it_is_and_the_deletion_of_none_are_no_changes() -> None:
    flags = [False, False, True, False, True]
    changes = pa.table({"id": [1, 2, 3, 4, 5], "v": [5, 7, None, 8, None], "_deleted": flags})
    old = pa.table({"id": [1, 2, None, None, 5], "v": [5, 6, None, None, 1]})
    known = FoundRows(np.array([True, True, False, False, True]), old)
    chosen = effective(last(changes, ("id",)), changes, known)
    assert chosen.tolist() == [False, True, False, True, True]
