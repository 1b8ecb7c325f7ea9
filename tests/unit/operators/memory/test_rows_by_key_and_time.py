"""Rows by key and time against lists that are gone through from end to end."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from headwater.operators.memory.numbered_rows import NOWHERE
from headwater.operators.memory.rows_by_key_and_time import KeySlots, RowsByKeyAndTime, tidied
from soaking import examples

SCHEMA = pa.schema([("id", pa.int64())])
ROWS = st.lists(st.tuples(st.integers(0, 5), st.integers(-4, 9)), max_size=12)
SPANS = st.lists(st.tuples(st.integers(0, 7), st.integers(-6, 11), st.integers(-6, 11)), max_size=8)


def columns(rows: list[Any], width: int) -> list[Any]:
    return [np.array([row[place] for row in rows], np.int64) for place in range(width)]


@examples(100)
@given(st.lists(st.tuples(ROWS, st.integers(-5, 10), st.booleans()), max_size=6), SPANS)
def test_a_tidy_ledger_has_what_was_not_dropped(steps: list[Any], spans: list[Any]) -> None:
    slots, waiting = KeySlots(), RowsByKeyAndTime(SCHEMA)
    kept: list[tuple[int, int, int]] = []
    for rows, before, tidy in steps:
        keys, at = columns(rows, 2)
        ids = [100 * len(kept) + place for place in range(len(rows))]
        numbers = waiting.add(pa.table({"id": ids}, schema=SCHEMA), at, slots.of(keys))
        waiting.note(numbers, np.array(ids, np.int64) % 7)
        kept += [(key, time, each) for (key, time), each in zip(rows, ids, strict=True)]
        waiting.drop(before)
        kept = [row for row in kept if row[1] >= before]
        if tidy:
            waiting.tidy()
    slots.of(np.arange(2000).astype(object))
    tidied(slots, waiting)
    assert len(slots) == len({key for key, *_ in kept})
    numbers = waiting.numbers()
    assert waiting.take(numbers)["id"].to_pylist() == [row[2] for row in kept]
    assert waiting.notes(numbers).tolist() == [row[2] % 7 for row in kept]
    assert waiting.first() == min((row[1] for row in kept), default=None)
    asked, least, most = columns(spans, 3)
    found = waiting.find(slots.find(asked.astype(object)), least, most)
    told = [row[2] for slot, low, high in spans for row in kept if row[0] == slot and low <= row[1] <= high]
    assert waiting.take(found.number)["id"].to_pylist() == told


def test_a_row_without_a_key_is_held_and_never_found() -> None:
    waiting = RowsByKeyAndTime(SCHEMA)
    nowhere, at = np.array([NOWHERE]), np.array([5])
    waiting.add(pa.table({"id": [1]}, schema=SCHEMA), at, nowhere)
    assert len(waiting.find(nowhere, at, at).number) == 0
    assert not waiting.any(nowhere, at, at).any()
    assert waiting.until(6).tolist() == [0]
