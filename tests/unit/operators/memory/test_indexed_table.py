"""Rows by primary key and by place against a dict, in the order in which they were put."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from headwater.operators.groups import Keys
from headwater.operators.memory.indexed_table import IndexedTable
from headwater.operators.memory.numbered_rows import NOWHERE
from headwater.record import DELETED
from soaking import examples

SCHEMA = pa.schema([("key", pa.int64()), ("value", pa.int64())])
ROW = st.tuples(st.integers(NOWHERE, 3), st.integers(0, 9))
STEPS = st.lists(st.dictionaries(st.integers(0, 8), st.none() | ROW), max_size=12)
Row = tuple[int, int]


def keys(some: list[int]) -> Keys:
    return np.array(some, np.int64).astype(np.object_)


def change(kept: IndexedTable, step: dict[int, Row | None]) -> None:
    """Put the rows of a step, each at its place, and delete the keys that have none."""
    found = kept.find(keys(list(step)))
    known = [(key, row) for (key, row), slot in zip(step.items(), found, strict=True) if row or slot >= 0]
    places = np.array([row[0] if row else NOWHERE for _, row in known], np.int64)
    deleted = np.array([row is None for _, row in known], np.bool_)
    some = keys([key for key, _ in known])
    delta = kept.delta(some, kept.find(some), places, deleted)
    there = [(key, row[1]) for key, row in known if row]
    kept.put(delta, pa.table({"key": [k for k, _ in there], "value": [v for _, v in there]}, schema=SCHEMA))
    kept.tidy(delta)


def after(held: dict[int, Row], step: dict[int, Row | None]) -> dict[int, Row]:
    """Return the rows that are there, those that were put last behind the others."""
    rest = {key: row for key, row in held.items() if key not in step}
    return rest | {key: row for key, row in step.items() if row}


def at_place(kept: IndexedTable, place: int) -> list[tuple[int, int]]:
    slots = np.sort(kept.ages(kept.index.get(np.array([place])).numbers))
    return [(row["key"], row["value"]) for row in kept.take(slots).to_pylist()]


@examples(40)
@given(STEPS)
def test_rows_are_found_by_key_and_by_place_in_the_order_in_which_they_were_put(
    steps: list[dict[int, Row | None]],
) -> None:
    kept, held = IndexedTable(SCHEMA), dict[int, Row]()
    for step in steps:
        change(kept, step)
        held = after(held, step)
        slots = kept.find(keys(list(range(9))))
        values = kept.take(kept.ages(slots), "value")["value"].to_pylist()
        assert values == [held[key][1] if key in held else None for key in range(9)]
        assert kept.index_keys(slots).tolist() == [held.get(key, (NOWHERE, 0))[0] for key in range(9)]
        for place in range(4):
            assert at_place(kept, place) == [(k, v) for k, (p, v) in held.items() if p == place]
        assert [row["key"] for row in kept.rows().to_pylist()] == list(held)
        assert len(kept) == len(held)


def test_a_row_as_it_is_and_the_deletion_of_none_are_no_changes() -> None:
    kept = IndexedTable(SCHEMA)
    change(kept, {1: (0, 5), 2: (0, 6)})
    changes = {"key": [1, 2, 3, 4], "value": [5, 7, None, 8], DELETED: [False, False, True, False]}
    slots = kept.find(keys([1, 2, 3, 4]))
    assert kept.effective(slots, np.array(changes[DELETED]), pa.table(changes)).tolist() == [1, 3]


def test_memory_follows_the_rows_that_are_there_and_the_order_stays() -> None:
    kept = IndexedTable(SCHEMA)
    for number in range(400):
        change(kept, dict.fromkeys((3, 1, 2), (0, number)) | {4: None if number % 2 else (1, number)})
    assert len(kept._rows) <= 2 * len(kept) + 1024
    assert kept.rows().to_pylist() == [{"key": key, "value": 399} for key in (3, 1, 2)]
