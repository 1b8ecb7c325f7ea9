"""Slots of keys, and of numbers that were given for them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from headwater.operators.memory.key_hash import hashed_groups
from headwater.operators.memory.slots import (
    SLOTS,
    next_numbers,
    slots_of_hashes,
    slots_of_keys,
    slots_of_numbers,
)


@given(st.lists(st.integers(0, SLOTS - 1), max_size=20), st.integers(0, 1 << 40))
def test_a_number_tells_the_slot_for_which_it_was_given(slots: list[int], given: int) -> None:
    numbers = next_numbers(given, np.array(slots, np.int64))
    assert slots_of_numbers(numbers).tolist() == slots_of_numbers(~numbers).tolist() == slots
    assert (np.diff(numbers) > 0).all()
    assert (numbers >= given << 8).all()


@given(st.lists(st.tuples(st.sampled_from(["a", "b", None]), st.integers(-3, 3)), max_size=20))
def test_rows_have_the_slots_of_the_hashes_of_their_keys(rows: list[tuple[str | None, int]]) -> None:
    table = pa.table(
        {"s": pa.array([s for s, _ in rows], pa.string()), "n": pa.array([n for _, n in rows], pa.int64())}
    )
    groups = hashed_groups(table, ("s", "n"))
    slots = slots_of_hashes(groups.keys.high[groups.of])
    assert slots_of_keys(table, ("s", "n")).tolist() == slots.tolist()


def test_all_slots_are_used_and_lie_in_the_order_of_hashes() -> None:
    high = np.array([-(1 << 63), -1, 0, (1 << 63) - 1])
    assert slots_of_hashes(high).tolist() == [0, 127, 128, 255]
