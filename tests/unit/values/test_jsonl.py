"""Rows as JSON and back: the round trip of every type, and what is refused with which words."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import orjson
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater import topic
from headwater.errors import RowError
from headwater.schema import is_variant
from headwater.values import jsonl, jsonl_columns
from soaking import examples

NAMES = ["a", "b", 'qu"ote', "ü"]
TIMES = st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31))


def kinds() -> st.SearchStrategy[str]:
    numbers = ["TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(12,3)"]
    others = ["BOOLEAN", "STRING", "BINARY", "DATE", "TIMESTAMP", "TIMESTAMP_NTZ"]
    simple = st.sampled_from(numbers + others)
    key = st.sampled_from(["STRING", "INT", "BOOLEAN", "DATE", "TIMESTAMP", "DECIMAL(12,3)", "BINARY"])

    def nested(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        return st.one_of(
            inner.map("ARRAY<{}>".format),
            st.builds("MAP<{}, {}>".format, key, inner),
            st.builds("STRUCT<x: {}, `y z`: {}>".format, inner, inner),
        )

    return st.recursive(simple, nested, max_leaves=3)


def values(kind: pa.DataType) -> st.SearchStrategy[Any]:
    return st.none() | present(kind)


def present(kind: pa.DataType) -> st.SearchStrategy[Any]:
    if pa.types.is_integer(kind):
        bits = kind.bit_width - 1
        return st.integers(-(2**bits), 2**bits - 1)
    if pa.types.is_floating(kind):
        return st.floats(width=kind.bit_width)
    if pa.types.is_decimal(kind):
        return st.integers(-(10**12) + 1, 10**12 - 1).map(lambda n: Decimal(n).scaleb(-3))
    if pa.types.is_timestamp(kind):
        return TIMES.map(lambda t: t.replace(tzinfo=UTC)) if kind.tz else TIMES
    if pa.types.is_map(kind):
        return st.lists(
            st.tuples(present(kind.key_type), values(kind.item_type)),
            max_size=3,
            unique_by=lambda pair: pair[0],
        )
    if pa.types.is_list(kind):
        return st.lists(values(kind.value_type), max_size=3)
    if pa.types.is_struct(kind):
        return st.fixed_dictionaries({field.name: values(field.type) for field in kind})
    plain = {
        pa.bool_(): st.booleans(),
        pa.string(): st.text(),
        pa.binary(): st.binary(max_size=9),
        pa.date32(): st.dates(),
    }
    return plain[kind]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@st.composite
def batches(draw: st.DrawFn) -> tuple[topic.Topic, pa.RecordBatch]:
    types = draw(st.lists(kinds() | st.just("VARIANT"), min_size=2, max_size=4))
    declared = topic.create("t", ", ".join(f"`{n}` {k}" for n, k in zip(NAMES, types, strict=False)))
    columns = []
    count = draw(st.integers(0, 6))
    for field in declared.schema:
        each = JSON.map(lambda v: orjson.dumps(v).decode()) if is_variant(field) else values(field.type)
        drawn = draw(st.lists(st.none() | each, min_size=count, max_size=count))
        columns.append(pa.array(drawn, field.type))
    batch = pa.RecordBatch.from_arrays(columns, schema=declared.schema)
    return declared, batch.slice(draw(st.integers(0, count)))


def same(left: Any, right: Any) -> bool:
    if isinstance(left, float) and isinstance(right, float):
        return left == right or (math.isnan(left) and math.isnan(right))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[k], right[k]) for k in left)
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(map(same, left, right))
    return bool(left == right)


@examples(400)
@given(batches())
def test_every_batch_survives_the_round_trip(drawn: tuple[topic.Topic, pa.RecordBatch]) -> None:
    declared, batch = drawn
    texts = jsonl.encode(batch, declared)
    assert all(isinstance(orjson.loads(text), dict) for text in texts)
    back, bad = jsonl.decode(texts, declared, strict=True)
    assert not bad
    assert back.schema.equals(declared.schema, check_metadata=True)
    assert same(back.to_pylist(), batch.to_pylist())


@examples(200)
@given(batches())
def test_both_ways_of_decoding_agree(drawn: tuple[topic.Topic, pa.RecordBatch]) -> None:
    declared, batch = drawn
    texts = jsonl.encode(batch, declared)
    fast = jsonl_columns.parse_fast(texts, declared, True)
    if fast is not None:
        assert same(fast.to_pylist(), jsonl_columns.parse(texts, declared, True).to_pylist())


ORDERS = topic.create("orders", "id BIGINT NOT NULL, name STRING, at TIMESTAMP, price DECIMAL(6,2)", key="id")

PIECES = st.sampled_from(
    [b"{", b"}", b"null", b'"id"', b":", b"1", b",", b"\n", b" ", b"[", b"]", b'"x"', b'{"id":1}', b"\xff",
     b"NaN", b'"name"', b"\r", b"\x00", b"\xef\xbb\xbf", b"-", b"e", b'"\\ud800"', b"true", b"//", b"/*"]
)  # fmt: skip


@examples(1500)
@given(st.lists(st.lists(PIECES, max_size=8).map(b"".join) | st.just(b'{"id":1}'), max_size=4))
def test_whatever_bytes_arrive_each_value_is_a_row_or_an_error(texts: list[bytes]) -> None:
    batch, bad = jsonl.decode(texts, ORDERS)
    assert len(batch) + len(bad) == len(texts)
    wrong = {index for index, _ in bad}
    for index, text in enumerate(texts):
        try:
            jsonl_columns.parse([text], ORDERS, False)
            assert index not in wrong
        except RowError:
            assert index in wrong


def test_the_texts_are_what_others_expect() -> None:
    declared = topic.create(
        "t",
        "i INT, t TIMESTAMP, n TIMESTAMP_NTZ, d DATE, p DECIMAL(5,2), b BINARY, m MAP<STRING, INT>, "
        "v VARIANT",
    )
    row = {
        "i": 1, "t": datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), "n": datetime(2026, 1, 2, 3, 4, 5, 6),
        "d": date(2026, 1, 2), "p": Decimal("1.50"), "b": b"hi", "m": [("k", 1)], "v": '{"free":[1]}',
    }  # fmt: skip
    text = jsonl.encode(pa.RecordBatch.from_pylist([row], schema=declared.schema), declared)[0]
    assert text == (
        b'{"i":1,"t":"2026-01-02T03:04:05.000000Z","n":"2026-01-02T03:04:05.000006","d":"2026-01-02",'
        b'"p":"1.50","b":"aGk=","m":{"k":1},"v":{"free":[1]}}'
    )


def test_one_variant_column_of_another_name_is_a_column_like_any() -> None:
    declared = topic.create("t", "payload VARIANT")
    batch, bad = jsonl.decode([b'{"payload":{"a":1}}'], declared)
    assert (batch.to_pydict(), bad) == ({"payload": ['{"a":1}']}, [])
    assert jsonl.encode(batch, declared) == [b'{"payload":{"a":1}}']


def test_a_free_topic_has_the_json_itself() -> None:
    declared = topic.create("t", "JSON")
    texts = [b'{"a": 1}', b"[1,2]", b'"x"', b"null", b"12"]
    batch, bad = jsonl.decode([*texts, b'{\n"b": 2}'], declared)
    assert not bad
    assert jsonl.encode(batch, declared) == [*texts, b'{"b": 2}']


@pytest.mark.parametrize("schema", ["a BIGINT", "a STRING", "a DOUBLE", "a BOOLEAN", "a TIMESTAMP", "a DATE",
                                    "a BINARY", "a DECIMAL(4,2)", "a ARRAY<INT>", "a STRUCT<x: INT>",
                                    "a MAP<STRING, INT>"])  # fmt: skip
def test_a_value_of_another_type_is_named(schema: str) -> None:
    declared = topic.create("t", schema + ", b STRING")
    wrong = b"5" if schema in ("a STRING", "a TIMESTAMP", "a DATE", "a BINARY", "a BOOLEAN") else b'"?"'
    batch, bad = jsonl.decode([b"{}", b'{"a":' + wrong + b"}", b'{"b":"x"}'], declared)
    assert batch.num_rows == 2
    [(index, error)] = bad
    assert index == 1
    assert error.message == f'row does not fit topic "t": column "a" is {schema[2:]}'
    assert error.detail is not None
    assert wrong.decode() in error.detail


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b'{"id":1.5}', 'column "id" is BIGINT'),
        (b'{"id":"1"}', 'column "id" is BIGINT'),
        (b'{"id":true}', 'column "id" is BIGINT'),
        (b'{"id":99999999999999999999}', 'column "id" is BIGINT'),
        (b'{"id":1,"price":"1.555"}', 'column "price" is DECIMAL(6,2)'),
        (b'{"id":1,"at":"yesterday"}', 'column "at" is TIMESTAMP'),
        (b"{}", 'column "id" of topic "orders" is part of the key'),
        (b'{"id":1', "value is not JSON"),
        (b'{"id":1}{"id":2}', "value is not JSON"),
        (b'{"id":1}null', "value is not JSON"),
        (b"", "value is not JSON"),
        (b'{"id":1,"name":"\xff"}', "value is not UTF-8"),
        (b"null", "value is not a JSON object"),
        (b"[1]", "value is not a JSON object"),
    ],
)
def test_bad_values_are_refused_and_the_others_kept(text: bytes, said: str) -> None:
    batch, bad = jsonl.decode([b'{"id":7}', text, b'{"id":8}'], ORDERS)
    assert batch.column("id").to_pylist() == [7, 8]
    assert [index for index, _ in bad] == [1]
    assert said in bad[0][1].message


def test_unknown_fields_are_left_out_unless_strict() -> None:
    texts = [b'{"id":1,"extra":true}', b'{"id":2}']
    assert jsonl.decode(texts, ORDERS)[0].column("id").to_pylist() == [1, 2]
    batch, bad = jsonl.decode(texts, ORDERS, strict=True)
    assert batch.column("id").to_pylist() == [2]
    assert bad[0][1].message == 'topic "orders" has no column "extra"'


def test_times_are_read_as_others_write_them() -> None:
    declared = topic.create("t", "at TIMESTAMP, wall TIMESTAMP_NTZ")
    written = ["2026-01-02T03:04:05", "2026-01-02T03:04:05Z", "2026-01-02T03:04:05+00:00",
               "2026-01-02 03:04:05.000000000Z"]  # fmt: skip
    texts = [orjson.dumps({"at": at, "wall": at}) for at in written] + [b'{"at":"2026-01-02"}']
    batch, bad = jsonl.decode(texts, declared)
    assert not bad
    at = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert batch.column("at").to_pylist() == [at, at, at, at, datetime(2026, 1, 2, tzinfo=UTC)]
    assert batch.column("wall").to_pylist()[:4] == [at.replace(tzinfo=None)] * 4


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        (
            b'{"id":"1"}',
            "write a whole number from -9223372036854775808 to 9223372036854775807, without quotes",
        ),
        (b'{"id":1,"at":"yesterday"}', 'write ISO 8601, as "2026-01-02T03:04:05Z"'),
        (b'{"id":1,"price":"1.555"}', 'write it as text with at most 2 digits after the point, as "1.00"'),
        (b'{"id":1,"name":5}', "write it in quotes"),
        (b'{"id":1', "write one JSON value per line"),
    ],
)
def test_a_bad_value_is_refused_with_what_to_write(text: bytes, hint: str) -> None:
    [(_, error)] = jsonl.decode([text], ORDERS)[1]
    assert error.hint == hint


def test_a_place_within_a_value_is_told_without_a_line() -> None:
    [(_, error)] = jsonl.decode([b'{"id":1'], ORDERS)[1]
    assert error.detail == "unexpected end of data, at character 8"


def test_metadata_is_left_out_even_if_strict_but_a_deletion_is_not() -> None:
    batch, bad = jsonl.decode([b'{"id":1,"_offset":7,"_headers":{}}'], ORDERS, strict=True)
    assert (batch.column("id").to_pylist(), bad) == ([1], [])
    [(_, error)] = jsonl.decode([b'{"id":1,"_deleted":true}'], ORDERS, strict=True)[1]
    assert error.message == 'topic "orders" has no column "_deleted"'
