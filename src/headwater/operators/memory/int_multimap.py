"""A multimap of integers: many numbers under each key, all in one array; added, removed, looked up in bulk.

The numbers of a key are a stretch of the array with room at its end. One that is full moves to the array's
end, with twice the room; what was removed leaves a hole, until a key has more holes than numbers. So numbers
are moved a logarithmic number of times, and a lookup of a key costs what is under it.

Invariant: a number is under one key at the most, and ``_where`` tells its position in the array.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from headwater.operators.groups import Numbers
from headwater.operators.memory.numbered_rows import NOWHERE
from headwater.operators.memory.slots import sized
from headwater.operators.order import stable

_HOLE = -1
_LITTLE = 1024


class MultimapMatches(NamedTuple):
    """What is under some keys: which of the keys asked for (``of``), and the number."""

    of: Numbers
    numbers: Numbers


class IntMultimap:
    """Numbers under keys, which are numbers too; both are counted from 0."""

    def __init__(self) -> None:
        self._array = np.empty(0, np.int64)
        self._end = 0
        self._held = 0  # the room of all keys, so that nobody has to add it up
        self._where = np.empty(0, np.int64)
        self._start = np.empty(0, np.int64)
        self._used = np.empty(0, np.int64)
        self._room = np.empty(0, np.int64)
        self._count = np.empty(0, np.int64)

    def count(self, keys: Numbers) -> Numbers:
        """Return how many numbers are under some keys; none under one that is nowhere."""
        known = (keys != NOWHERE) & (keys < len(self._count))
        counts = np.zeros(len(keys), np.int64)
        counts[known] = self._count[keys[known]]
        return counts

    def get(self, keys: Numbers) -> MultimapMatches:
        """Return what is under some keys; nothing for one that is nowhere."""
        asked = np.flatnonzero(self.count(keys))
        positions, of = spread(self._start[keys[asked]], self._used[keys[asked]])
        numbers = self._array[positions]
        full = numbers != _HOLE
        return MultimapMatches(asked[of[full]], numbers[full])

    def add(self, keys: Numbers, numbers: Numbers) -> None:
        """Put numbers, none of them under a key yet, under a key each."""
        if not len(keys):
            return
        positions = stable(keys)
        keys, numbers = keys[positions], numbers[positions]
        begin = np.flatnonzero(np.diff(keys, prepend=NOWHERE))
        which, more = keys[begin], np.diff(begin, append=len(keys))
        self._grow(int(which[-1]) + 1, int(numbers.max()) + 1)
        self._make_room(which, more)
        target, _ = spread(self._start[which] + self._used[which], more)
        self._array[target] = numbers
        self._where[numbers] = target
        self._used[which] += more
        self._count[which] += more

    def remove(self, keys: Numbers, numbers: Numbers) -> None:
        """Remove numbers from the keys that they are under."""
        if not len(keys):
            return
        self._array[self._where[numbers]] = _HOLE
        np.subtract.at(self._count, keys, 1)
        which = np.unique(keys)
        self._move(which[self._used[which] > 2 * self._count[which]])

    def _grow(self, keys: int, numbers: int) -> None:
        self._where = sized(self._where, numbers, NOWHERE)
        for name in ("_start", "_used", "_room", "_count"):
            setattr(self, name, sized(getattr(self, name), keys, 0))

    def _make_room(self, which: Numbers, more: Numbers) -> None:
        full = self._used[which] + more > self._room[which]
        self._move(which[full], more[full])

    def _move(self, which: Numbers, more: Numbers | None = None) -> None:
        """Put keys at the array's end, without their holes, and with room for twice as much."""
        if not len(which):
            return
        old = self.get(which)
        need = self._count[which] + (0 if more is None else more)
        room = np.where(need == 1, 1, 2 * need)
        self._held += int(room.sum() - self._room[which].sum())
        self._room[which], self._start[which] = room, self._end + np.cumsum(room) - room
        self._end += int(room.sum())
        self._array = sized(self._array, self._end, _HOLE)
        self._used[which] = self._count[which]
        target, _ = spread(self._start[which], self._count[which])
        self._array[target] = old.numbers
        self._where[old.numbers] = target
        if self._end > 2 * self._held + _LITTLE:
            self._pack()

    def _pack(self) -> None:
        """Leave out the stretches that no key uses any more."""
        keys = np.flatnonzero(self._room)
        old = self.get(keys)
        self._used[keys] = self._count[keys]
        self._start[keys] = np.cumsum(self._room[keys]) - self._room[keys]
        self._end = self._held
        target, _ = spread(self._start[keys], self._count[keys])
        self._array = np.full(self._end, _HOLE)
        self._array[target] = old.numbers
        self._where[old.numbers] = target


def spread(starts: Numbers, lengths: Numbers) -> tuple[Numbers, Numbers]:
    """Return the numbers of ranges one after the other, and which range each is of."""
    of = np.repeat(np.arange(len(starts)), lengths)
    begin = np.cumsum(lengths) - lengths
    return np.arange(int(lengths.sum())) - (begin - starts)[of], of
