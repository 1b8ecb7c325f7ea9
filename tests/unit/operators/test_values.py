from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.operators.values import dicts, values
from headwater.schema import parse
from soaking import examples

SMALL = st.integers(-128, 127)
KINDS = {
    "BOOLEAN": st.booleans(),
    "TINYINT": SMALL,
    "BIGINT": st.integers(-(2**63), 2**63 - 1),
    "FLOAT": st.floats(width=32, allow_nan=False),
    "DOUBLE": st.floats(allow_nan=False),
    "STRING": st.text(st.characters(exclude_categories=["Cs"]), max_size=3),
    "BINARY": st.binary(max_size=3),
    "DATE": st.dates(),
    "TIMESTAMP": st.integers(-62_135_596_800_000_000, 253_402_300_799_999_999),
    "TIMESTAMP_NTZ": st.integers(-62_135_596_800_000_000, 253_402_300_799_999_999),
    "DECIMAL(5,2)": st.decimals(-999, 999, places=2),
    "MAP<STRING, INT>": st.dictionaries(st.sampled_from("ab"), SMALL),
    "STRUCT<a: INT>": st.fixed_dictionaries({"a": SMALL}),
}


@pytest.mark.parametrize("kind", KINDS)
@examples(25)
@given(st.data())
def test_the_values_are_those_that_arrow_gives(kind: str, data: st.DataObject) -> None:
    column = pa.array(data.draw(st.lists(st.none() | KINDS[kind])), parse(f"c {kind}").field("c").type)
    assert _typed(values(column)) == _typed(column.to_pylist(maps_as_pydicts="strict"))
    assert _typed(values(column[1:])) == _typed(column[1:].to_pylist(maps_as_pydicts="strict"))


def _typed(some: list[Any]) -> list[tuple[type, Any, Any]]:
    return [(type(v), v, getattr(v, "utcoffset", lambda: None)()) for v in some]


def test_nan_stays_nan() -> None:
    nan, none = values(pa.array([math.nan, None]))
    assert math.isnan(nan)
    assert none is None


def test_rows_become_dicts() -> None:
    rows = pa.table({"a": pa.chunked_array([[1], [None]]), "b": ["x", "y"]})
    assert list(dicts(rows)) == [{"a": 1, "b": "x"}, {"a": None, "b": "y"}]
