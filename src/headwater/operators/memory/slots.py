"""Keys as small numbers that index arrays: a key that goes gives its number back.

Invariant: keys that are there have different numbers, all of them below ``len`` of the slots.
"""

from __future__ import annotations

from collections.abc import Hashable
from itertools import repeat

import numpy as np

from headwater.operators.groups import Keys, Numbers
from headwater.operators.memory.numbered_rows import NOWHERE


class Slots:
    """The number of each key that is there."""

    def __init__(self) -> None:
        self._slots: dict[Hashable, int] = {}
        self._keys: list[Hashable] = []
        self._free: list[int] = []

    def __len__(self) -> int:
        """Return how many numbers there are, those that were given back among them."""
        return len(self._keys)

    def find(self, keys: Keys) -> Numbers:
        """Return the number of each key; NOWHERE for one that is not there."""
        return np.fromiter(map(self._slots.get, keys.tolist(), repeat(NOWHERE)), np.int64, len(keys))

    def give(self, keys: Keys) -> Numbers:
        """Give numbers to keys that are not there, each of them once."""
        given, again = keys.tolist(), min(len(keys), len(self._free))
        old = self._free[len(self._free) - again :]
        del self._free[len(self._free) - again :]
        for slot, key in zip(old, given, strict=False):
            self._keys[slot] = key
        slots = [*old, *range(len(self), len(self) + len(given) - again)]
        self._keys.extend(given[again:])
        self._slots.update(zip(given, slots, strict=True))
        return np.array(slots, np.int64)

    def drop(self, slots: Numbers) -> None:
        """Forget the keys of some numbers, which later keys may get."""
        for slot in slots.tolist():
            del self._slots[self._keys[slot]]
            self._keys[slot] = None
        self._free.extend(slots.tolist())


def sized(array: Numbers, size: int, fill: int) -> Numbers:
    """Return an array of at least a size, grown by half or more so that growing is seldom."""
    if len(array) >= size:
        return array
    more = np.full(max(size - len(array), len(array) // 2, 16), fill, np.int64)
    return np.concatenate([array, more])
