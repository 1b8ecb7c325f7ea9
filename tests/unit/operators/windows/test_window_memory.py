"""The keys and the clock of a window are stored with its containers."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa

from headwater.operators.memory.entries import newest
from headwater.operators.memory.key_hash import hashed_groups
from headwater.operators.memory.key_ids import KeyIds
from headwater.operators.memory.sorted_runs import SortedRuns
from headwater.operators.windows.window_memory import window_memory
from unit.operators.stepping import TablesInMemory

EMPTY = pa.table({"n": pa.array([], pa.int64())})
KEYS = hashed_groups(pa.table({"k": ["a", "b"]}), ["k"]).keys


@dataclass
class State:
    key_ids: KeyIds = field(default_factory=KeyIds)
    watermark: int = 0
    spent: int = 0


def test_keys_keep_their_numbers_and_the_clock_its_time() -> None:
    state, files = State(), TablesInMemory()
    numbers = state.key_ids.numbers(KEYS).tolist()
    assert [number >> 8 for number in numbers] == [0, 1]  # and the slot behind
    state.watermark, state.spent = 7, 3
    stored = window_memory(state, {"held": SortedRuns(EMPTY, newest)}, {"spent": (state, "spent")}).save(
        files
    )
    again = State()
    runs = {"held": SortedRuns(EMPTY, newest)}
    window_memory(again, runs, {"spent": (again, "spent")}).open(stored, files)
    assert (again.watermark, again.spent, len(again.key_ids)) == (7, 3, 2)
    assert again.key_ids.numbers(KEYS.take([1, 0])).tolist() == numbers[::-1]
