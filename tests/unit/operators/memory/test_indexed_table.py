"""Rows by primary key and by index key against a dict, in the order in which they were put."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from headwater.operators.memory.entries import distinct
from headwater.operators.memory.indexed_table import UNMET, IndexedTable, IndexKeys
from headwater.operators.memory.key_hash import KeyHashes, hashes
from headwater.operators.memory.operator_memory import OperatorMemory
from soaking import examples
from unit.operators.stepping import LOGGED, SPILLED, TablesInMemory

SCHEMA = pa.schema([("key", pa.int64()), pa.field("_age", pa.int64(), nullable=False)])
ROW = st.tuples(st.none() | st.integers(0, 3), st.integers(0, 9))
STEP = st.tuples(
    st.dictionaries(st.integers(0, 8), st.none() | ROW), st.sampled_from([None, LOGGED, SPILLED])
)
Row = tuple[int | None, int]


def keys(some: list[int]) -> KeyHashes:
    return hashes([pa.array(some, pa.int64())], len(some))


def index_keys(some: list[int | None]) -> KeyHashes:
    high, low = hashes([pa.array(some, pa.int64())], len(some))
    return KeyHashes(high, np.where([each is None for each in some], UNMET, low))


def change(held: IndexedTable, step: dict[int, Row | None]) -> None:
    """Put the rows of a step, each under its index key, and delete the keys that have none."""
    old = held.find(keys(list(step)))
    some = old.known | np.array([bool(row) for row in step.values()], np.bool_)
    chosen = [list(step.items())[place] for place in np.flatnonzero(some).tolist()]
    put = [(key, row) for key, row in chosen if row]
    rows = pa.table([[key for key, _ in put], [row[1] for _, row in put]], schema=SCHEMA)
    deleted = np.array([row is None for _, row in chosen], np.bool_)
    index = index_keys([row[0] for _, row in put])
    slots = np.array([key % 5 for key, _ in put], np.int64)
    given = IndexKeys(index, slots)
    made = held.change(keys([key for key, _ in chosen]), old.only(some), deleted, given, rows)
    assert made.rows.equals(rows)


def reopened(held: IndexedTable, files: TablesInMemory, limits: Any) -> IndexedTable:
    saved = OperatorMemory(held.containers("left"), held.counters("left")).save(files, limits)
    again = IndexedTable(SCHEMA)
    OperatorMemory(again.containers("left"), again.counters("left")).open(saved, files)
    return again


def under(held: IndexedTable, some: list[int]) -> list[tuple[int, int]]:
    asked = KeyHashes(*distinct(*index_keys(list(some))))
    of, found = held.under(asked)
    assert [half.tolist() for half in asked.take(of)] == [half.tolist() for half in found.index]
    rows = found.rows.take(pa.array(np.argsort(found.ages)))
    return [(row["key"], row["_age"]) for row in rows.to_pylist()]


@examples(60)
@given(st.lists(STEP, max_size=12))
def test_rows_are_found_by_key_and_by_index_key_in_the_order_in_which_they_were_put(
    steps: list[tuple[dict[int, Row | None], Any]],
) -> None:
    held, expected, files = IndexedTable(SCHEMA), dict[int, Row](), TablesInMemory()
    for step, limits in steps:
        change(held, step)
        expected = {key: row for key, row in expected.items() if key not in step}
        expected |= {key: row for key, row in step.items() if row}
        held = held if limits is None else reopened(held, files, limits)
        found = held.find(keys(list(range(9))))
        assert found.known.tolist() == [key in expected for key in range(9)]
        assert found.rows.column("_age").to_pylist() == [expected.get(key, (0, None))[1] for key in range(9)]
        for some in ([0], [1, 3], [2, 9], []):
            assert under(held, some) == [(key, row[1]) for key, row in expected.items() if row[0] in some]
        assert held.rows().column("key").to_pylist() == list(expected)


def test_a_row_keeps_its_number_while_its_key_is_there() -> None:
    held = IndexedTable(SCHEMA)
    change(held, {1: (0, 5), 2: (0, 6)})
    change(held, {1: (3, 7), 3: (0, 8)})
    change(held, {2: None})
    change(held, {2: (0, 9)})
    assert [number >> 8 for number in held.find(keys([1, 2, 3])).ids.tolist()] == [0, 3, 2]


def test_index_keys_of_which_one_half_is_equal_are_told_apart_by_the_other() -> None:
    held = IndexedTable(SCHEMA)
    old = held.find(keys([1, 2]))
    rows = pa.table([[1, 2], [5, 6]], schema=SCHEMA)
    index = KeyHashes(np.array([7, 7]), np.array([1, 2]))
    given = IndexKeys(index, np.zeros(2, np.int64))
    held.change(keys([1, 2]), old, np.zeros(2, np.bool_), given, rows)
    assert held.under(index.take(np.array([1])))[1].rows.column("key").to_pylist() == [2]
    of, found = held.under(index)
    assert (of.tolist(), found.rows.column("key").to_pylist()) == ([0, 1], [1, 2])


def test_nothing_is_held_of_rows_that_are_gone() -> None:
    held, files = IndexedTable(SCHEMA), TablesInMemory()
    for number in range(20):
        change(held, dict.fromkeys((3, 1, 2), (number % 3, number)))
        change(held, dict.fromkeys((1, 2, 3)))
        held = reopened(held, files, SPILLED)
    assert sum(map(len, held.containers("left").values())) == 0
