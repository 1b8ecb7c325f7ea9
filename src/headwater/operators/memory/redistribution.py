"""What several states of an operator hold, divided anew among others by the slots of keys.

All entries of a container are read once, in their order and a stretch at a time, and each is written where
its slot belongs. Nothing of an entry changes: numbers that were given tell their slots, so those of different
states never meet.

Invariant: an entry that one of the states holds is in exactly one of the new ones, and what is forgotten, or
stands for no row, is in none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from headwater.operators.groups import Numbers
from headwater.operators.memory.entries import Entries, joined, merged
from headwater.operators.memory.operator_memory import OperatorMemory, StoredMemory
from headwater.operators.memory.run import Stretch
from headwater.operators.memory.sorted_runs import (
    RunFiles,
    SortedRuns,
    StoredRuns,
    between,
    bounds,
    entries_table,
    put_part,
)

GATHERED_BYTES = 64 << 20
"""What is read at a time, and what all new states together hold before parts of runs are written."""
LOGGED_BYTES = 1 << 20
"""A container of a new state that has less is logged: a run is a file of its own."""
Report = Callable[[int], None]
"""Is told of entries that have been moved, as many at a time."""


def redistribute(
    memories: Sequence[OperatorMemory],
    owners: Numbers,
    files: RunFiles,
    report: Report = lambda moved: None,
    size: int = GATHERED_BYTES,
) -> list[StoredMemory]:
    """Store what states hold as new ones, given the number of the one that each slot belongs to."""
    count = int(owners.max()) + 1
    moved = {
        name: _moved([memory.containers[name] for memory in memories], owners, files, report, size)
        for name in memories[0].containers
    }
    # Of all that is counted, the greatest is as good as any: a number given after it is new in every slot.
    found = [memory.numbers() for memory in memories]
    numbers = {name: max(each[name] for each in found) for name in found[0]}
    return [
        StoredMemory({name: stored[number] for name, stored in moved.items()}, numbers)
        for number in range(count)
    ]


def _moved(
    sources: list[SortedRuns], owners: Numbers, files: RunFiles, report: Report, size: int
) -> list[StoredRuns]:
    floor, minor_floor = (min(each) for each in zip(*(source.floors for source in sources), strict=True))
    count = int(owners.max()) + 1
    writers = [_Writer(files, size // count) for _ in range(count)]
    for low, high in between(bounds([run for source in sources for run in source.runs()], size)):
        pieces = [piece for source in sources if len(piece := source.held(low, high))]
        if pieces:
            entries = merged(pieces, None) if len(pieces) > 1 else pieces[0]
            _deal(entries, owners[sources[0].slots(entries)], writers)
            report(len(entries))
    return [StoredRuns(*writer.finish(), floor, minor_floor) for writer in writers]


def _deal(entries: Entries, owner: Numbers, writers: list[_Writer]) -> None:
    for number in np.unique(owner).tolist():
        writers[number].add(entries.take(np.flatnonzero(owner == number)))


class _Writer:
    """The entries of a container of one new state, in their order."""

    def __init__(self, files: RunFiles, size: int):
        self._files, self._size = files, size
        self._gathered: list[Entries] = []
        self._parts: list[Stretch] = []

    def add(self, entries: Entries) -> None:
        """Add entries, which lie behind those before."""
        self._gathered.append(entries)
        if sum(each.size for each in self._gathered) >= max(self._size, LOGGED_BYTES):
            self._write()

    def finish(self) -> tuple[tuple[Stretch, ...], tuple[tuple[Stretch, ...], ...]]:
        """Return what is logged, and runs."""
        if not self._gathered and not self._parts:
            return (), ()
        if not self._parts and sum(each.size for each in self._gathered) < LOGGED_BYTES:
            return (self._files.put(entries_table(joined(self._gathered))),), ()
        if self._gathered:
            self._write()
        return (), (tuple(self._parts),)

    def _write(self) -> None:
        self._parts.append(put_part(self._files, joined(self._gathered)))
        self._gathered = []
