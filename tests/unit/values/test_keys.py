from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.values import keys

MASK = 0xFFFFFFFF


def murmur2(data: bytes) -> int:
    """Kafka's hash, one byte at a time: slow and obvious."""
    m, h = 0x5BD1E995, 0x9747B28C ^ len(data)
    whole = len(data) // 4 * 4
    for at in range(0, whole, 4):
        k = int.from_bytes(data[at : at + 4], "little") * m & MASK
        k = (k ^ (k >> 24)) * m & MASK
        h = (h * m & MASK) ^ k
    if len(data) > whole:
        h = (h ^ int.from_bytes(data[whole:], "little")) * m & MASK
    h = (h ^ (h >> 13)) * m & MASK
    return h ^ (h >> 15)


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (b"21", -973932308), (b"foobar", -790332482), (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829), (b"abc", 479470107),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
    ],
)  # fmt: skip
def test_hashes_are_those_that_kafka_publishes(key: bytes, expected: int) -> None:
    assert int(keys.murmur2(pa.array([key]))[0]) == expected & MASK


@given(st.lists(st.binary(max_size=40), max_size=50))
def test_hashing_in_bulk_equals_hashing_one_by_one(values: list[bytes]) -> None:
    assert keys.murmur2(pa.array(values, pa.binary())).tolist() == [murmur2(v) for v in values]


@given(st.lists(st.text(), min_size=3), st.integers(1, 50))
def test_a_slice_of_a_column_hashes_as_the_column_does(values: list[str], count: int) -> None:
    column = pa.array(values)
    whole = keys.partitions([column], count).tolist()
    assert keys.partitions([column.slice(1)], count).tolist() == whole[1:]
    assert all(0 <= p < count for p in whole)


@given(st.lists(st.tuples(st.text(), st.integers(-(2**63), 2**63 - 1), st.booleans()), min_size=1))
def test_composite_keys_are_distinct_where_their_values_are(rows: list[tuple[str, int, bool]]) -> None:
    columns = [pa.array(list(values)) for values in zip(*rows, strict=True)]
    encoded = keys.key_bytes(columns).to_pylist()
    assert len(set(encoded)) == len(set(rows))
    types = [column.type for column in columns]
    assert [tuple(keys.split_key(key, types)) for key in encoded] == rows


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        ("é", pa.string(), "é".encode()),
        (-7, pa.int64(), b"-7"),
        (True, pa.bool_(), b"true"),
        (b"\x00\xff", pa.binary(), b"\x00\xff"),
        (date(2026, 1, 2), pa.date32(), b"2026-01-02"),
        (Decimal("1.50"), pa.decimal128(5, 2), b"1.50"),
        (datetime(2026, 1, 2, tzinfo=UTC), pa.timestamp("us", "UTC"), b"2026-01-02T00:00:00.000000Z"),
    ],
)
def test_a_single_key_is_its_own_text(value: object, kind: pa.DataType, text: bytes) -> None:
    assert keys.key_bytes([pa.array([value], kind)]).to_pylist() == [text]


@given(st.lists(st.binary(max_size=40), min_size=1), st.integers(1, 1024))
def test_one_key_lies_in_the_partition_that_a_column_of_it_does(values: list[bytes], count: int) -> None:
    expected = keys.partitions([pa.array(values, pa.binary())], count).tolist()
    assert [keys.partition_of(each, count) for each in values] == expected
