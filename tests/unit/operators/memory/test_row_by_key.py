"""One row for each key: what was put there last, until it is removed."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from headwater.operators.memory.key_hash import KeyHashes, hashed_groups
from headwater.operators.memory.row_by_key import RowByKey
from soaking import examples
from unit.operators.stepping import LOGGED, SPILLED, TablesInMemory

SCHEMA = pa.schema([("k", pa.string()), pa.field("v", pa.int64(), nullable=False)])


def rows(pairs: dict[str, int]) -> pa.Table:
    return pa.table([pa.array(pairs, pa.string()), pa.array(pairs.values(), pa.int64())], schema=SCHEMA)


def keys(some: Any) -> KeyHashes:
    return hashed_groups(pa.table({"k": pa.array(list(some), pa.string())}), ["k"]).keys


@examples(100)
@given(
    st.lists(
        st.tuples(
            st.dictionaries(st.sampled_from("abcdefgh"), st.integers(0, 9)),
            st.sets(st.sampled_from("abcdefgh")),
            st.sampled_from([None, LOGGED, SPILLED]),
        )
    )
)
def test_each_key_has_the_row_that_was_put_last_until_it_is_removed(steps: list[Any]) -> None:
    held, expected, files = RowByKey(SCHEMA), dict[str, int](), TablesInMemory()
    for put, removed, limits in steps:
        held.put(keys(put), rows(put))
        held.remove(keys(removed))
        expected = {k: v for k, v in (expected | put).items() if k not in removed}
        if limits is not None:
            saved, held = held.runs.save(files, limits), RowByKey(SCHEMA)
            held.runs.open(saved, files)
        assert sorted(held.rows().to_pylist(), key=str) == sorted(rows(expected).to_pylist(), key=str)
        found = held.find(keys("hagbfc"), "v")
        assert found.known.tolist() == [k in expected for k in "hagbfc"]
        assert found.rows.to_pylist() == [{"v": expected.get(k)} for k in "hagbfc"]


def test_a_column_may_have_any_name() -> None:
    held = RowByKey(pa.schema([("_removed", pa.string())]))
    held.put(keys("ab"), pa.table({"_removed": ["x", "y"]}))
    held.remove(keys("a"))
    assert held.rows().to_pylist() == [{"_removed": "y"}]


def test_removed_rows_are_gone_from_a_run_behind_which_nothing_lies() -> None:
    held, files = RowByKey(SCHEMA), TablesInMemory()
    for _ in range(6):
        held.put(keys("abc"), rows({"a": 1, "b": 2, "c": 3}))
        held.remove(keys("abc"))
        held.runs.save(files, SPILLED)
    assert len(held.runs) == 0
