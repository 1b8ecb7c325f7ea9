"""Numbers in bags, many bags in one array: a batch is added, taken out or looked up in bulk.

A bag is a stretch of the array with room at its end. One that is full moves to the array's end, with
twice the room; what was taken out leaves a hole, until a bag has more holes than numbers. So numbers
are moved a logarithmic number of times, and a look into a bag costs what the bag holds.

Invariant: a number is in one bag at the most, and ``_where`` tells its place in the array.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from headwater.operators.groups import Numbers
from headwater.operators.memory.pile import NOWHERE
from headwater.operators.memory.slots import sized
from headwater.operators.order import stable

_HOLE = -1
_LITTLE = 1024


class BagMatches(NamedTuple):
    """What some bags hold: which of the bags asked for (``of``), and the number."""

    of: Numbers
    numbers: Numbers


class Bags:
    """Bags of numbers; bags and numbers are counted from 0."""

    def __init__(self) -> None:
        self._array = np.empty(0, np.int64)
        self._end = 0
        self._held = 0  # the room of all bags, so that nobody has to add it up
        self._where = np.empty(0, np.int64)
        self._start = np.empty(0, np.int64)
        self._used = np.empty(0, np.int64)
        self._room = np.empty(0, np.int64)
        self._count = np.empty(0, np.int64)

    def count(self, bags: Numbers) -> Numbers:
        """Return how many numbers some bags hold; a bag that is nowhere holds none."""
        known = (bags != NOWHERE) & (bags < len(self._count))
        counts = np.zeros(len(bags), np.int64)
        counts[known] = self._count[bags[known]]
        return counts

    def look(self, bags: Numbers) -> BagMatches:
        """Return what some bags hold; nothing for one that is nowhere."""
        asked = np.flatnonzero(self.count(bags))
        places, of = spread(self._start[bags[asked]], self._used[bags[asked]])
        numbers = self._array[places]
        full = numbers != _HOLE
        return BagMatches(asked[of[full]], numbers[full])

    def add(self, bags: Numbers, numbers: Numbers) -> None:
        """Put numbers, none of them in a bag yet, into a bag each."""
        if not len(bags):
            return
        places = stable(bags)
        bags, numbers = bags[places], numbers[places]
        begin = np.flatnonzero(np.diff(bags, prepend=NOWHERE))
        which, more = bags[begin], np.diff(begin, append=len(bags))
        self._grow(int(which[-1]) + 1, int(numbers.max()) + 1)
        self._make_room(which, more)
        target, _ = spread(self._start[which] + self._used[which], more)
        self._array[target] = numbers
        self._where[numbers] = target
        self._used[which] += more
        self._count[which] += more

    def remove(self, bags: Numbers, numbers: Numbers) -> None:
        """Take numbers out of the bags that they are in."""
        if not len(bags):
            return
        self._array[self._where[numbers]] = _HOLE
        np.subtract.at(self._count, bags, 1)
        which = np.unique(bags)
        self._move(which[self._used[which] > 2 * self._count[which]])

    def _grow(self, bags: int, numbers: int) -> None:
        self._where = sized(self._where, numbers, NOWHERE)
        for name in ("_start", "_used", "_room", "_count"):
            setattr(self, name, sized(getattr(self, name), bags, 0))

    def _make_room(self, which: Numbers, more: Numbers) -> None:
        full = self._used[which] + more > self._room[which]
        self._move(which[full], more[full])

    def _move(self, which: Numbers, more: Numbers | None = None) -> None:
        """Put bags at the array's end, without their holes, and with room for twice as much."""
        if not len(which):
            return
        old = self.look(which)
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
        """Leave out the stretches that no bag uses any more."""
        bags = np.flatnonzero(self._room)
        old = self.look(bags)
        self._used[bags] = self._count[bags]
        self._start[bags] = np.cumsum(self._room[bags]) - self._room[bags]
        self._end = self._held
        target, _ = spread(self._start[bags], self._count[bags])
        self._array = np.full(self._end, _HOLE)
        self._array[target] = old.numbers
        self._where[old.numbers] = target


def spread(starts: Numbers, lengths: Numbers) -> tuple[Numbers, Numbers]:
    """Return the numbers of ranges one after the other, and which range each is of."""
    of = np.repeat(np.arange(len(starts)), lengths)
    begin = np.cumsum(lengths) - lengths
    return np.arange(int(lengths.sum())) - (begin - starts)[of], of
