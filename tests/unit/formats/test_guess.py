"""Guessed declarations: what is printed can be declared, and reads the records it was guessed from."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater import Pipeline
from headwater.errors import UsageError
from headwater.formats import decoding
from headwater.formats.guess import SampledRecord, guess
from headwater.formats.writer_schema import WriterSchema
from soaking import examples

NOON = 1_767_268_800_000


class NoRegistry:
    def kind(self, id: int) -> str:
        raise UsageError("no schema registry is named")

    def get(self, id: int, kind: str) -> WriterSchema:
        raise UsageError("no schema registry is named")


WRITERS = NoRegistry()


def line(*records: tuple[bytes | None, Any], topic: str = "clicks") -> str:
    values = [
        SampledRecord(key, value if isinstance(value, bytes | None) else orjson.dumps(value))
        for key, value in records
    ]
    return guess(topic, values, WRITERS).line


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        (
            [(b"ada", {"user": "ada", "n": 5, "at": NOON}), (b"bob", {"user": "bob", "n": None, "at": NOON})],
            'source("clicks", "user STRING, n BIGINT, at BIGINT", '
            'key="user", event_time="timestamp_millis(at)")',
        ),
        (
            [(None, {"at": "2026-01-02T03:04:05Z", "tags": ["a"]})],
            'source("clicks", "at TIMESTAMP, tags ARRAY<STRING>", event_time="at")',
        ),
        (
            [(b'{"id":5}', {"name": "a"}), (b'{"id":5}', None)],
            'table("clicks", "id BIGINT, name STRING", key="id", key_format="json")',
        ),
        ([(None, b"[1]"), (None, b"5")], 'source("clicks", "JSON")'),
        (
            [(None, b'1,"a",2026-01-02T03:04:05Z'), (None, b"2,,2026-01-02T03:04:06Z")],
            'source("clicks", "c1 BIGINT, c2 STRING, c3 TIMESTAMP", event_time="c3", format="csv")',
        ),
        (
            [(b"host", b"GET / 200")],
            'source("clicks", "key STRING, line STRING", key="key", format="text", key_format="text")',
        ),
        ([(None, b"\xff\x00")], 'source("clicks", "body BINARY", format="bytes")'),
        ([(None, b"\0\0\0\0\1x")], 'source("clicks", "body BINARY", format="bytes")'),
        ([], 'source("clicks", "JSON")'),
    ],
)  # fmt: skip
def test_the_line_to_paste(records: list[tuple[bytes | None, Any]], expected: str) -> None:
    assert line(*records) == expected
    made = eval(expected.replace('source(', 'pipeline.source(').replace('table(', 'pipeline.table('), {
        "pipeline": Pipeline("web", log="kafka://host")})  # fmt: skip
    assert made.topic == "clicks"


def test_a_name_that_no_parameter_can_have_becomes_one() -> None:
    assert (
        line((None, {"a": 1}), topic="web.clicks-1")
        == 'source("web_clicks_1", "a BIGINT", topic="web.clicks-1")'
    )


def test_names_that_no_column_can_have_are_left_out_and_said() -> None:
    value = orjson.dumps({"_offset": 1, "a": 1, "A": 2, "": 3})
    made = guess("t", [SampledRecord(None, value)], WRITERS)
    assert made.schema == "a BIGINT"
    assert len(made.notes) == 3


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text()
    | st.just("2026-01-02T03:04:05Z"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)  # fmt: skip
JSON = st.dictionaries(st.text(max_size=3), VALUES, max_size=3).map(
    lambda value: json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
)
BYTES = JSON | st.binary(max_size=9) | st.text(max_size=9).map(str.encode)


@examples(400)
@given(
    st.lists(st.tuples(st.none() | BYTES, st.none() | BYTES), max_size=5)
    | st.lists(st.tuples(st.none(), JSON), max_size=5)
)
def test_whatever_the_records_are_the_guess_can_be_declared_and_says_what_does_not_fit(
    records: list[tuple[bytes | None, bytes | None]],
) -> None:
    made = guess("t", [SampledRecord(*each) for each in records], WRITERS)
    declared = made.declared()
    values = [value for _, value in records if value is not None]
    _, bad = decoding.decode_values(values, declared, WRITERS)
    assert bool(bad) == any("do not fit" in note for note in made.notes)
    pipeline = Pipeline("web", log="kafka://host")
    assert eval(f"pipeline.{made.line}", {"pipeline": pipeline}).topic == "t"
