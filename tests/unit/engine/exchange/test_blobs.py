"""Rows as blobs: the rows of a bucket keep their order, from the batches that go in to the operator."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from headwater.engine.exchange import blobs, routing

SCHEMA = pa.schema([("key", pa.int64()), ("n", pa.int64())])


def numbered(keys: list[int]) -> pa.Table:
    return pa.table({"key": keys, "n": range(len(keys))}, schema=SCHEMA)


@given(st.lists(st.integers(0, 20), max_size=60), st.integers(1, 8))
def test_every_row_is_in_the_bucket_of_its_key_once_and_in_order(keys: list[int], count: int) -> None:
    rows = numbered(keys)
    packed = blobs.packed(rows, ["key"], count, 3, tally=False)
    found = {row["bucket"]: blobs.decode(row["blob"]).to_pylist() for row in packed.to_pylist()}
    expected: dict[int, list[dict[str, int]]] = {}
    for row, bucket in zip(rows.to_pylist(), routing.buckets(rows, ["key"], count), strict=True):
        expected.setdefault(int(bucket), []).append(row)
    assert found == expected
    assert packed[blobs.TASK].to_pylist() == [3] * len(found)


def test_a_tally_counts_the_rows_also_where_there_are_none() -> None:
    for keys in ([], [1, 2, 2]):
        packed = blobs.packed(numbered(keys), ["key"], 4, 0, tally=True).to_pylist()
        assert [row["blob"] for row in packed if row["bucket"] == blobs.TALLY] == [str(len(keys)).encode()]


def test_a_task_packs_all_of_its_batches_and_nothing_where_it_has_none() -> None:
    pack = blobs.packing(["key"], 1, tally=True)
    batches: Iterator[pa.RecordBatch] = iter([*numbered([1]).to_batches(), *numbered([2, 3]).to_batches()])
    [packed] = pack(batches)
    assert blobs.decode(packed[blobs.BLOB][0].as_py())["key"].to_pylist() == [1, 2, 3]
    assert list(pack(iter(()))) == []


def test_blobs_are_read_in_their_order_and_in_the_schema_asked_for() -> None:
    wide = pa.schema([("key", pa.int64()), ("n", pa.float64())])
    given = [blobs.encode(numbered([5])), blobs.encode(numbered([4, 4]))]
    assert blobs.decode_all(given, wide).to_pydict() == {"key": [5, 4, 4], "n": [0.0, 0.0, 1.0]}
    assert blobs.decode_all([], wide) == wide.empty_table()


def test_no_rows_make_no_bucket() -> None:
    assert list(blobs.split(numbered([]), np.array([], np.int32))) == []
