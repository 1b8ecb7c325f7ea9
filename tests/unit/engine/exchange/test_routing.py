"""Buckets: equal keys meet, whatever their type, and the same in every release."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.engine.exchange.routing import buckets, owners

VALUES = [
    (pa.int64(), [1, -1, None, 1 << 62]),
    (pa.int8(), [1, -1, None, 127]),
    (pa.string(), ["", "ada", None, "zoë"]),
    (pa.binary(), [b"", b"\x00", None, b"ada"]),
    (pa.bool_(), [True, False, None]),
    (pa.float64(), [0.0, 1.5, None, float("nan"), float("inf")]),
    (pa.decimal128(10, 2), [Decimal("1.00"), None, Decimal("-7.25")]),
    (pa.date32(), [0, 19_000, None]),
    (pa.timestamp("us", "UTC"), [0, 1_700_000_000_000_000, None]),
    (pa.list_(pa.int64()), [[1, 2], [], None]),
    (pa.struct([("a", pa.int64())]), [{"a": 1}, {"a": None}, None]),
]


@pytest.mark.parametrize(("kind", "values"), VALUES, ids=lambda each: str(each)[:20])
def test_equal_values_of_every_type_have_the_same_bucket(kind: pa.DataType, values: list[Any]) -> None:
    column = pa.array([*values, *reversed(values)], kind)
    found = buckets(pa.table({"k": column}), ["k"], 8)
    assert (found == found[::-1]).all()
    assert set(found.tolist()) <= set(range(8))


def test_zeros_and_numbers_that_are_none_are_equal_keys() -> None:
    other = np.frombuffer(np.uint64(0x7FF8_0000_0000_0001).tobytes(), np.float64)[0]
    found = buckets(pa.table({"k": pa.array([0.0, -0.0, float("nan"), other])}), ["k"], 1 << 20)
    assert (found[0], found[2]) == (found[1], found[3])


@given(
    st.lists(st.tuples(st.integers(-3, 3), st.sampled_from(["a", "b", None])), max_size=30), st.integers(0, 5)
)
def test_a_slice_has_the_buckets_of_the_whole(rows: list[tuple[int, str | None]], start: int) -> None:
    table = pa.table(
        {"n": pa.array([n for n, _ in rows], pa.int64()), "s": pa.array([s for _, s in rows], pa.string())}
    )
    whole = buckets(table, ["n", "s"], 8)
    assert buckets(table.slice(start), ["n", "s"], 8).tolist() == whole[start:].tolist()


def test_buckets_stay_what_they_are() -> None:
    """A state that was stored by an older release must find its rows."""
    table = pa.table({"n": [1, 2, 3, 4], "s": ["ada", "bob", "cyd", "dan"]})
    assert buckets(table, ["n"], 8).tolist() == [3, 0, 0, 2]
    assert buckets(table, ["s"], 8).tolist() == [3, 3, 7, 3]
    assert buckets(table, ["n", "s"], 8).tolist() == [3, 7, 7, 7]
    assert buckets(table, [], 8).tolist() == [0, 0, 0, 0]


def test_keys_are_spread() -> None:
    found = buckets(pa.table({"k": [f"user-{n}" for n in range(8000)]}), ["k"], 8)
    assert np.bincount(found, minlength=8).min() > 700


@pytest.mark.parametrize("count", [1, 2, 3, 100, 255, 256])
def test_buckets_have_slots_side_by_side_and_as_many_as_the_others(count: int) -> None:
    found = owners(count)
    assert (np.diff(found) >= 0).all()
    sizes = np.bincount(found, minlength=count)
    assert sizes.max() - sizes.min() <= 1
