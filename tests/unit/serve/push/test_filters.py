"""Filters: texts become values of their columns, and rows and batches are judged alike."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.errors import UsageError
from headwater.schema import parse
from headwater.serve.push.filters import FilterTexts

SCHEMA = parse("city STRING, day BIGINT, at TIMESTAMP, ok BOOLEAN, x DOUBLE, tags ARRAY<STRING>")
KEY = ("city", "day")


def test_texts_become_values_of_their_columns() -> None:
    texts = FilterTexts(["Oslo", "7"], ["ok:true", "at:2026-01-01T00:00:00Z"])
    read = texts.read("view", SCHEMA, KEY)
    assert read.key == ("Oslo", 7)
    assert dict(read.conditions) == {
        "city": "Oslo", "day": 7, "ok": True, "at": datetime(2026, 1, 1, tzinfo=UTC),
    }  # fmt: skip


def test_a_value_may_have_a_colon() -> None:
    assert FilterTexts((), ["city:a:b"]).read("view", SCHEMA, KEY).conditions == (("city", "a:b"),)


@pytest.mark.parametrize(
    ("key", "where"),
    [("abc", ()), ((), ["day"]), ((), ["days:1"]), ((), ["day:x"]), ((), ["tags:x"]), ((), ["x:NaN"])],
)
def test_what_does_not_fit_is_refused(key: str, where: list[str]) -> None:
    with pytest.raises(UsageError):
        FilterTexts(list(key), where).read("view", SCHEMA, KEY)


@given(
    rows=st.lists(st.tuples(st.sampled_from(["a", "b", None]), st.sampled_from([1, 2, None])), max_size=8),
    city=st.sampled_from(["a", "b"]),
    day=st.sampled_from(["1", "2", None]),
)
def test_rows_and_batches_are_judged_alike(
    rows: list[tuple[str | None, int | None]], city: str, day: str | None
) -> None:
    schema = pa.schema({"city": pa.string(), "day": pa.int64()})
    dicts = [{"city": c, "day": d} for c, d in rows]
    texts = FilterTexts([city], [] if day is None else [f"day:{day}"])
    read = texts.read("view", schema, KEY)
    selected = read.select(pa.RecordBatch.from_pylist(dicts, schema)).to_pylist()
    assert selected == [row for row in dicts if read.takes(row)]
    assert not read.takes(None)
