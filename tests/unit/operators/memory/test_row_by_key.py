"""One row for each key, and the numbered rows below it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from headwater.operators.memory import row_by_key
from headwater.operators.memory.numbered_rows import NOWHERE, NumberedRows
from headwater.operators.memory.row_by_key import RowByKey
from soaking import examples

SCHEMA = pa.schema([("k", pa.string()), ("v", pa.int64())])


def rows(pairs: dict[str, int]) -> pa.Table:
    return pa.table({"k": pa.array(pairs, pa.string()), "v": pa.array(pairs.values(), pa.int64())})


def keys(some: Any) -> Any:
    return np.array(list(some), np.object_)


@examples(100)
@given(st.lists(st.dictionaries(st.sampled_from("abcdefgh"), st.integers(0, 9))))
def test_each_key_has_the_row_that_was_put_last(puts: list[dict[str, int]]) -> None:
    little, row_by_key._LITTLE = row_by_key._LITTLE, 3  # so that out-of-date rows are thrown away early
    try:
        held, expected = RowByKey(SCHEMA), dict[str, int]()
        for put in puts:
            held.put(keys(put), held.find(keys(put)), rows(put))
            expected |= put
            assert held.rows().to_pylist() == rows(expected).to_pylist()
            found = held.take(held.find(keys("hagbfc")), "v")
            assert found.to_pylist() == [{"v": expected.get(k)} for k in "hagbfc"]
            assert len(held._rows) <= 2 * len(held) + 3
    finally:
        row_by_key._LITTLE = little


@examples(100)
@given(st.lists(st.integers(0, 6)), st.lists(st.integers(0, 10_000)))
def test_a_row_keeps_its_number(sizes: list[int], wanted: list[int]) -> None:
    numbered, total = NumberedRows(pa.table({"n": pa.array([], pa.int64())})), 0
    for size in sizes:
        numbered.append(pa.table({"n": pa.array(range(total, total + size), pa.int64())}))
        total += size
    numbers = np.array([each % (total + 1) - 1 for each in wanted], np.int64)
    expected = [None if each == NOWHERE else each for each in numbers.tolist()]
    assert numbered.take(numbers)["n"].to_pylist() == expected
    assert len(numbered._parts) < 8
