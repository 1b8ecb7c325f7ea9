"""Rows as JSON, whatever their types."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal

import pyarrow as pa

from headwater.schema import parse
from headwater.serve.push.row_json import encode_rows, encode_values, key_rows


def test_rows_have_the_form_of_the_command_line() -> None:
    columns = "id BIGINT, at TIMESTAMP, d DECIMAL(9,2), b BINARY, x DOUBLE, m MAP<STRING, INT>, v VARIANT"
    schema = parse(columns)
    row = {
        "id": 1, "at": datetime(2026, 1, 1, tzinfo=UTC), "d": Decimal("1.50"), "b": b"\0", "x": float("nan"),
        "m": [("a", 1)], "v": '{"free": [1]}',
    }  # fmt: skip
    [text, empty] = encode_rows(pa.RecordBatch.from_pylist([row, {}], schema))
    assert json.loads(text) == {
        "id": 1, "at": "2026-01-01T00:00:00.000000Z", "d": "1.50", "b": "AA==", "x": "NaN",
        "m": {"a": 1}, "v": {"free": [1]},
    }  # fmt: skip
    assert empty == b"{}"


def test_keys_are_arrays_of_their_values() -> None:
    fields = list(parse("city STRING, day BIGINT"))
    assert encode_values(key_rows([("a\n", 1), ("b", 2)], fields)) == [b'["a\\n",1]', b'["b",2]']
