"""Records on their way into a log: numbered, placed and checked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater import topic
from headwater.errors import RowError
from headwater.log.record_batch import Builder, OutgoingBatch
from headwater.values.keys import partitions
from headwater.values.sent_rows import Marked

KEYED = topic.create("t", "k STRING, n INT NOT NULL", key="k", partitions=3)
PLAIN = topic.create("t", "n INT NOT NULL", partitions=3)
WHERE = dict(zip("abcde", partitions([pa.array(list("abcde"))], 3).tolist(), strict=True))
good = st.builds(lambda k, n: {"k": k, "n": n}, st.sampled_from("abcde"), st.integers(0, 99))
bad = st.sampled_from([{"k": "a"}, {"k": "a", "n": "x"}, {"k": None, "n": 1}, {"k": "a", "n": 1, "m": 1}, 7])


def told(records: OutgoingBatch | None) -> list[tuple[int, Any]]:
    if records is None:
        return []
    return list(zip(records.sequence.tolist(), records.batch.to_pylist(), strict=True))


def fits(row: Any) -> bool:
    return isinstance(row, dict) and row.keys() == {"k", "n"} and isinstance(row["n"], int) and row["k"]


@given(st.lists(good | bad, max_size=12), st.integers(0, 5))
def test_rows_that_do_not_fit_are_left_out_and_the_others_keep_their_numbers(
    rows: list[Any], first: int
) -> None:
    builder = Builder(lambda: KEYED, first)
    records, refused = builder.from_rows(rows)
    assert told(records) == [(first + at, row) for at, row in enumerate(rows) if fits(row)]
    assert (refused is None) == all(map(fits, rows))
    assert builder.sequence == first + len(rows)


@given(st.lists(st.tuples(good, st.none() | st.integers(0, 20)), min_size=1, max_size=12))
def test_numbers_that_rows_bring_grow_within_each_partition_and_repeats_are_left_out(
    rows: list[tuple[Any, int | None]],
) -> None:
    records, refused = Builder(lambda: KEYED, 3).from_rows([Marked(row, sequence=own) for row, own in rows])
    assert refused is None
    following, wanted, last = 3, [], dict[int, int]()
    for row, own in rows:
        number = following if own is None else own
        following = max(following, number + 1)
        if number > last.get(WHERE[row["k"]], -1):
            wanted.append((number, row))
            last[WHERE[row["k"]]] = number
    assert told(records) == wanted


def test_a_key_decides_the_partition_and_without_one_the_number_does_so_again_alike() -> None:
    keyed, _ = Builder(lambda: KEYED, 0).from_rows([{"k": k, "n": 1} for k in "abcabcabc"])
    assert keyed is not None
    assert keyed.partition[:3].tolist() * 3 == keyed.partition.tolist()
    plain, _ = Builder(lambda: PLAIN, 4).from_rows([{"n": n} for n in range(6)])
    assert plain is not None
    assert plain.partition.tolist() == [1, 2, 0, 1, 2, 0]


def test_a_batch_is_numbered_from_where_it_says_and_the_next_one_behind_it() -> None:
    builder = Builder(lambda: PLAIN, 0)
    batch = pa.RecordBatch.from_pylist([{"n": 1}, {"n": 2}], schema=PLAIN.schema)
    assert builder.from_batch(batch, 10).sequence.tolist() == [10, 11]
    assert builder.from_batch(batch, None).sequence.tolist() == [12, 13]
    assert builder.from_batch(batch, 3).sequence.tolist() == [3, 4]
    assert builder.sequence == 14


@pytest.mark.parametrize("count", [0, 1, 70_000])
def test_pieces_together_are_the_records(count: int) -> None:
    batch = pa.RecordBatch.from_arrays([pa.array(np.arange(count), pa.int32())], schema=PLAIN.schema)
    extras = {"_deleted": pa.array(np.arange(count) % 2 == 0)}
    pieces = Builder(lambda: PLAIN, 5).from_batch(batch, None, extras).pieces()
    assert max((len(each.batch) for each in pieces), default=0) <= 1 << 16
    assert [n for each in pieces for n in each.sequence.tolist()] == list(range(5, count + 5))
    assert [n for each in pieces for n in each.batch.column(0).to_pylist()] == list(range(count))
    assert sum(each.extras["_deleted"].true_count for each in pieces) == (count + 1) // 2


def test_whatever_a_row_is_it_is_refused_as_a_row() -> None:
    class Broken(Mapping[str, Any]):
        def __getitem__(self, name: str) -> Any:
            raise RuntimeError("broken")

        def __iter__(self) -> Iterator[str]:
            return iter(["n"])

        def __len__(self) -> int:
            return 1

    records, refused = Builder(lambda: PLAIN, 0).from_rows([Broken(), {"n": 2}])
    assert isinstance(refused, RowError)
    assert refused.reason == "RuntimeError: broken"
    assert told(records) == [(1, {"n": 2})]


@given(st.lists(st.lists(st.sampled_from("abcde"), max_size=4), min_size=1, max_size=6), st.booleans())
def test_each_run_of_rows_ends_where_counting_back_from_the_last_says(
    runs: list[list[str]], contiguous: bool
) -> None:
    keys = [key for run in runs for key in run]
    batch = pa.record_batch({"k": pa.array(keys, pa.string()), "n": pa.array([0] * len(keys), pa.int32())})
    records = OutgoingBatch(batch, np.arange(len(keys), dtype=np.int64), KEYED, 0)
    reached = {number: 100 + number for number in {WHERE[key] for key in keys}}
    left, expected = dict(reached), list[dict[int, int]]()
    for run in reversed(runs):
        expected.insert(0, {WHERE[key]: left[WHERE[key]] for key in run})
        for key in run if contiguous else ():
            left[WHERE[key]] -= 1
    assert records.ends([len(run) for run in runs], reached, contiguous) == expected
