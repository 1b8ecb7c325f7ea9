"""The text of a row's key."""

from __future__ import annotations

import pyarrow as pa
import pytest

from headwater.errors import RowError
from headwater.sinks.key_text import key_texts
from headwater.values.keyed import declare


def texts(rows: pa.RecordBatch, *key: str) -> list[str]:
    return key_texts(rows, declare("cache", rows.schema, key))


def test_one_column_is_its_own_text_and_several_are_an_array() -> None:
    rows = pa.record_batch({"shop": ["a,b", "c"], "item": [1, 2]})
    assert texts(rows, "shop") == ["a,b", "c"]
    assert texts(rows, "item") == ["1", "2"]
    assert texts(rows, "shop", "item") == ['["a,b",1]', '["c",2]']


def test_bytes_that_are_no_text_are_refused() -> None:
    with pytest.raises(RowError, match="is not text"):
        texts(pa.record_batch({"id": pa.array([b"\xff"])}), "id")
