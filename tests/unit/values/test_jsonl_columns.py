"""JSON text to columns: the fast way takes nothing that the exact way reads otherwise."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater import schema, topic
from headwater.errors import RowError
from headwater.values import jsonl_columns
from headwater.values.columns import Misfit

TOPIC = topic.create(
    "t", "id BIGINT NOT NULL, x FLOAT, y DOUBLE, d DECIMAL(6,2), at TIMESTAMP, tags ARRAY<STRING>"
)
MEMBERS = {
    "id": ["1", "-0", "1.0", "1.5", "null", "9223372036854775808", '"1"'],
    "x": ["0.1", "16777217", "1e39", '"NaN"', "NaN", "null"],
    "d": ['"1.50"', "1.005", "12345.6", "123456", '"1e2"'],
    "at": ['"2026-01-02T03:04:05Z"', '"2026-01-02"', '"2026-01-02 03:04:05.1234567"', '"10000-01-01"', "0"],
    "tags": ["[]", '["a",null]', '["a\\u0000"]', '"a"', "[1]"],
    "more": ["1", '"x"'],
}
objects = st.fixed_dictionaries(
    {"id": st.sampled_from(MEMBERS["id"])},
    optional={name: st.sampled_from(texts) for name, texts in MEMBERS.items() if name != "id"},
).map(lambda row: "{" + ",".join(f'"{name}":{text}' for name, text in row.items()) + "}")
odd = st.sampled_from(["null", "", " {}", '{"id":1}{"id":2}', '{"id":1,"id":2}', '{"id":1}\n', "[]", "{"])


@given(st.lists(objects | odd, min_size=1, max_size=3), st.booleans())
def test_what_the_fast_way_takes_the_exact_way_takes_with_the_same_result(
    lines: list[str], strict: bool
) -> None:
    values = [line.encode() for line in lines]
    fast = jsonl_columns.parse_fast(values, TOPIC, strict)
    if fast is not None:
        assert repr(fast.to_pylist()) == repr(jsonl_columns.parse(values, TOPIC, strict).to_pylist())


def test_the_fast_way_takes_what_is_plain() -> None:
    values = [b'{"id":1,"x":0.5,"at":"2026-01-02T03:04:05Z"}', b'{"id":2,"tags":["a"]}']
    found = jsonl_columns.parse_fast(values, TOPIC, strict=True)
    assert found is not None
    assert found.column("id").to_pylist() == [1, 2]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b'{"id":1,"id":2}', "cannot be kept as it is"),
        (b'{"x":1}', "NOT NULL"),
        (b"[1]", "not a JSON object"),
        (b'{"id":1', "not JSON"),
        (b'{"id":1,"tags":["\xff"]}', "not UTF-8"),
        (b'{"id":1,"d":"1.005"}', '"d" is DECIMAL'),
        (b'{"id":1,"y":9007199254740993}', '"y" is DOUBLE'),
        (b'{"id":1,"y":0.12345678901234567890123}', '"y" is DOUBLE'),
        (b'{"id":1,"i":2}', 'no column "i"'),
    ],
)
def test_what_does_not_fit_is_refused_by_the_exact_way_and_left_to_it_by_the_fast_one(
    line: bytes, said: str
) -> None:
    assert jsonl_columns.parse_fast([line], TOPIC, strict=True) is None
    with pytest.raises(RowError, match=said):
        jsonl_columns.parse([line], TOPIC, strict=True)


@pytest.mark.parametrize(
    "kind",
    ["TINYINT", "BIGINT", "DECIMAL(9,3)", "DATE", "TIMESTAMP", "BINARY", "BOOLEAN", "DOUBLE", "STRING"],
)
def test_the_hint_for_a_type_shows_how_a_value_of_it_is_written(kind: str) -> None:
    hint = jsonl_columns.how_to_write(schema.parse(f"c {kind}").field(0))
    assert hint is not None
    assert hint.startswith("write ")
    if " as " in hint:
        example = hint.rpartition(" as ")[2].strip('"')
        assert jsonl_columns.column([example], schema.parse(f"c {kind}").field(0).type)[0].is_valid


def test_a_time_without_a_zone_is_utc_and_a_zone_is_refused_where_the_column_has_none() -> None:
    texts = ["2026-01-02 03:04:05", "2026-01-02T04:04:05+01:00", None]
    at = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert jsonl_columns.column(texts, schema.TIMESTAMP).to_pylist() == [at, at, None]
    with pytest.raises(Misfit, match="time zone"):
        jsonl_columns.column(texts, pa.timestamp("us"))
