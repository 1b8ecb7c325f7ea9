"""Columns guessed from JSON: a declaration of them reads what they were guessed from."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater import topic
from headwater.formats import json_columns
from headwater.values import jsonl
from soaking import examples

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False) | st.text()
    | st.datetimes().map(lambda at: at.isoformat()) | st.dates().map(str),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip
NAMES = st.sampled_from(["a", "b", "C d", "ü"])


@examples(600)
@given(st.lists(st.dictionaries(NAMES, VALUES, max_size=3), min_size=1, max_size=5))
def test_a_declaration_of_the_columns_reads_every_value(objects: list[dict[str, Any]]) -> None:
    columns = json_columns.columns_of(objects)
    schema = ", ".join(each.ddl for each in columns) or "none INT"
    batch, bad = jsonl.decode([orjson.dumps(each) for each in objects], topic.create("t", schema))
    assert (bad, len(batch)) == ([], len(objects)), schema


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, 2], "BIGINT"),
        ([1, 2.5, None], "DOUBLE"),
        ([True], "BOOLEAN"),
        (["x", None], "STRING"),
        ([None], "STRING"),
        (["2026-01-02T03:04:05Z", "2026-01-02T03:04:05+01:00"], "TIMESTAMP"),
        (["2026-01-02"], "DATE"),
        (["2026-01-02", "x"], "STRING"),
        (["2026-13-02T03:04:05Z"], "STRING"),
        ([1, "x"], "VARIANT"),
        ([2**63], "VARIANT"),
        ([[1], [], [2, None]], "ARRAY<BIGINT>"),
        ([[]], "VARIANT"),
        ([[1, "x"]], "VARIANT"),
        ([{"x": 1}, {"y": "a"}], "STRUCT<x: BIGINT, y: STRING>"),
        ([{"x": [1, "a"]}], "VARIANT"),
        ([{"x": 1, "X": 2}], "VARIANT"),
        ([{}], "VARIANT"),
    ],
)
def test_the_narrowest_type_that_holds_all_values(values: list[Any], kind: str) -> None:
    assert json_columns.type_of(values) == kind
