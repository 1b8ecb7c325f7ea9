"""Containers divided anew; that operators go on alike is in ``tests/unit/operators/test_buckets.py``."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from headwater.operators.memory.key_hash import KeyHashes, hashes
from headwater.operators.memory.operator_memory import OperatorMemory
from headwater.operators.memory.redistribution import redistribute
from headwater.operators.memory.row_by_key import RowByKey
from headwater.operators.memory.slots import SLOTS, slots_of_hashes
from headwater.operators.memory.sorted_runs import Limits
from soaking import examples
from unit.operators.stepping import TablesInMemory

SCHEMA = pa.schema([("n", pa.int64())])


def keys(some: list[int]) -> KeyHashes:
    return hashes([pa.array(some, pa.int64())], len(some))


@examples(60)
@given(
    steps=st.lists(st.tuples(st.sets(st.integers(0, 40)), st.booleans(), st.booleans()), max_size=6),
    counts=st.tuples(st.integers(1, 8), st.integers(1, 8)),
    size=st.sampled_from([1, 1 << 20]),
)
def test_each_row_is_where_its_slot_belongs_and_removed_ones_are_nowhere(
    steps: list[tuple[set[int], bool, bool]], counts: tuple[int, int], size: int
) -> None:
    before, after = (np.arange(SLOTS) * count // SLOTS for count in counts)
    files, held = TablesInMemory(), dict[int, int]()
    sources = [RowByKey(SCHEMA) for _ in range(counts[0])]
    for number, (some, removed, spilled) in enumerate(steps):
        for key in some:
            source = sources[before[slots_of_hashes(keys([key]).high)[0]]]
            source.remove(keys([key])) if removed else source.put(
                keys([key]), pa.table([[key]], schema=SCHEMA)
            )
            held.pop(key, None) if removed else held.update({key: number})
        for source in sources:
            source.runs.save(files, Limits(0, 0, 1) if spilled else None)
    memories = [OperatorMemory({"rows": source.runs}) for source in sources]
    found = []
    for number, stored in enumerate(redistribute(memories, after, files, size=size)):
        target = RowByKey(SCHEMA)
        OperatorMemory({"rows": target.runs}).open(stored, files)
        mine = target.rows()["n"].to_pylist()
        assert len(target.runs) == len(mine), "nothing is held of rows that are gone"
        assert all(after[slots_of_hashes(keys([key]).high)[0]] == number for key in mine)
        found += mine
    assert sorted(found) == sorted(held)
