"""A stored row as JSON is what Arrow's way makes of it."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import orjson
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from headwater.schema import parse
from headwater.stores.sqlite import values
from headwater.stores.sqlite.json_text import row_text
from headwater.topic import Topic
from headwater.values import jsonl

SCHEMA = parse(
    "i BIGINT, s STRING, f DOUBLE, b BOOLEAN, d DATE, t TIMESTAMP, n TIMESTAMP_NTZ, x BINARY, "
    "m DECIMAL(10,2), w DECIMAL(5,0), l ARRAY<INT>, o STRUCT<a: STRING>, v VARIANT"
)
TIMES = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30))
ROW = st.fixed_dictionaries(
    {
        "i": st.integers(-(2**63), 2**63 - 1),
        "s": st.text(),
        "f": st.floats(),
        "b": st.booleans(),
        "d": st.dates(date(1, 1, 2)),
        "t": TIMES.map(lambda time: time.replace(tzinfo=UTC)),
        "n": TIMES,
        "x": st.binary(),
        "m": st.decimals(-9999999, 9999999, places=2),
        "w": st.decimals(-9999, 9999, places=0),
        "l": st.lists(st.integers(-5, 5)),
        "o": st.fixed_dictionaries({"a": st.text()}),
        "v": st.sampled_from(["1", '{"a":[1.50]}', "null"]),
    }
)


@given(ROW, st.sets(st.sampled_from(SCHEMA.names)))
def test_it_means_what_the_long_way_writes(row: dict[str, Any], nulls: set[str]) -> None:
    given_row = {name: None if name in nulls else value for name, value in row.items()}
    batch = pa.RecordBatch.from_pylist([given_row], schema=SCHEMA)
    stored = [values.encode(batch.column(field.name), field)[0] for field in SCHEMA]
    made = row_text(stored, SCHEMA)
    (expected,) = jsonl.encode(batch, Topic("view", (SCHEMA,)))
    assert made is not None and orjson.loads(made) == orjson.loads(expected)


def test_what_is_not_sure_goes_the_long_way() -> None:
    assert row_text([0.1], parse("f FLOAT")) is None
    assert row_text([1 << 62], parse("t TIMESTAMP")) is None
