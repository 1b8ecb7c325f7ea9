"""Rows as CSV."""

from __future__ import annotations

import pyarrow as pa

from headwater.values.csv_text import to_csv


def test_what_csv_has_no_form_for_is_json_or_base64() -> None:
    batch = pa.RecordBatch.from_pydict({"a": [1, None], "b": [b"x", None], "c": [[1, 2], None]})
    assert to_csv(batch) == b'"a","b","c"\n1,"eA==","[1,2]"\n,,\n'
    assert to_csv(batch, header=False).startswith(b"1,")
