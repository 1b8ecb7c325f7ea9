"""All containers of an operator are saved and opened together, with its numbers."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headwater.operators.memory.entries import Entries, newest
from headwater.operators.memory.operator_memory import OperatorMemory, StoredMemory
from headwater.operators.memory.sorted_runs import SortedRuns
from unit.operators.stepping import LOGGED, SPILLED, TablesInMemory

EMPTY = pa.table({"n": pa.array([], pa.int64())})


@dataclass
class Clock:
    time: int = 0


def memory(clock: Clock) -> tuple[OperatorMemory, SortedRuns, SortedRuns]:
    here, there = SortedRuns(EMPTY, newest), SortedRuns(EMPTY, newest)
    return OperatorMemory({"here": here, "there": there}, {"time": (clock, "time")}), here, there


def entries(*numbers: int) -> Entries:
    some = np.array(numbers, np.int64)
    return Entries(some, some, pa.table({"n": some}))


def test_containers_and_numbers_are_opened_as_they_were_saved() -> None:
    clock, files = Clock(), TablesInMemory()
    whole, here, there = memory(clock)
    here.add(entries(1, 2))
    there.add(entries(7))
    clock.time = 5
    first = whole.save(files, SPILLED)
    here.add(entries(3))
    stored = whole.save(files, LOGGED)
    assert set(stored.stretches) - set(first.stretches), "what is new is stored beside what was there"
    later = Clock()
    again, mine, other = memory(later)
    again.open(StoredMemory.from_json(json.loads(json.dumps(stored.to_json()))), files)
    assert (mine.all().major.tolist(), other.all().major.tolist()) == ([1, 2, 3], [7])
    assert later.time == 5


def test_what_has_learnt_nothing_is_stored_as_it_was() -> None:
    whole, here, _ = memory(Clock())
    files = TablesInMemory()
    here.add(entries(1))
    assert whole.save(files) == whole.save(files)
    assert whole.size == here.size > 0
