from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.operators.groups import group
from headwater.schema import parse
from soaking import examples
from unit.operators.stepping import ROWS, Row, key, table


@examples(100)
@given(st.lists(ROWS), st.sampled_from([("k",), ("x",), ("k", "x"), ("at", "v", "x")]))
def test_groups_are_numbered_as_their_keys_first_appear(rows: list[Row], by: tuple[str, ...]) -> None:
    keys = [key(row, by) for row in rows]
    distinct = list(dict.fromkeys(keys))
    groups = group(table(rows), by)
    assert groups.of.tolist() == [distinct.index(each) for each in keys]
    assert groups.first.tolist() == [keys.index(each) for each in distinct]
    assert len(set(groups.keys.tolist())) == len(distinct)


@examples(50)
@given(st.lists(ROWS, min_size=1), st.sampled_from([("k",), ("x",), ("k", "x")]))
def test_a_key_is_the_same_whichever_rows_it_comes_with(rows: list[Row], by: tuple[str, ...]) -> None:
    groups = group(table(rows), by)
    assert group(table(rows[-1:]), by).keys[0] == groups.keys[groups.of[-1]]


@pytest.mark.parametrize(
    ("kind", "some"),
    [
        ("STRING", ["a", None, "b"]),
        ("BINARY", [b"a", None, b"b"]),
        ("BOOLEAN", [True, None, False]),
        ("FLOAT", [0.5, None, math.nan, math.inf]),
        ("DECIMAL(5,2)", [1, None, 2]),
        ("DATE", [1, None, 2]),
        ("TIMESTAMP", [1, None, 2]),
        ("ARRAY<INT>", [[1], None, [], [1, None]]),
        ("STRUCT<a: INT>", [{"a": 1}, None, {"a": None}]),
        ("MAP<STRING, INT>", [[("a", 1)], None, []]),
    ],
)
def test_a_key_may_be_of_any_type(kind: str, some: list[Any]) -> None:
    column = pa.array([*some, *some], parse(f"c {kind}").field("c").type)
    groups = group(pa.table({"c": pa.chunked_array([column[:3], column[3:]])}), ["c"])
    assert groups.of.tolist() == [*range(len(some)), *range(len(some))]
    assert len({hash(each) for each in groups.keys}) == len(some)


def test_all_nans_are_one_key() -> None:
    nans = np.array([0x7FF8 << 48, 0x7FF8 << 48 | 1, -(1 << 51)], np.int64).view(np.float64)
    assert np.isnan(nans).all()
    assert group(pa.table({"c": nans}), ["c"]).of.tolist() == [0, 0, 0]
