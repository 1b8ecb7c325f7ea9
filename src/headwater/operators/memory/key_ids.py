"""Keys as numbers that last (ids), so that what is known of a key is found by a number, and many at once.

Invariant: a key that something is held of keeps its number; a number is never given twice.
"""

from __future__ import annotations

import numpy as np

from headwater.operators.groups import Keys, Numbers

_FEW = 1024


class KeyIds:
    """Keys as numbers that stay the same while a state holds something of the key."""

    def __init__(self) -> None:
        self._numbers: dict[object, int] = {}
        self._next = 0
        self._crowd = _FEW

    def __len__(self) -> int:
        return len(self._numbers)

    @property
    def crowded(self) -> bool:
        """Whether it is time to ask which of the keys are still held."""
        return len(self._numbers) > self._crowd

    def numbers(self, keys: Keys) -> Numbers:
        """Return the number of each key; a new one gets the next."""
        found = np.fromiter((self._numbers.get(key, -1) for key in keys.tolist()), np.int64, len(keys))
        new = np.flatnonzero(found < 0)
        found[new] = np.arange(self._next, self._next + len(new))
        self._numbers.update(zip(keys[new].tolist(), found[new].tolist(), strict=True))
        self._next += len(new)
        return found

    def keep(self, held: Numbers) -> None:
        """Forget the keys whose numbers are not among those that are held."""
        some = set(held.tolist())
        self._numbers = {key: number for key, number in self._numbers.items() if number in some}
        self._crowd = max(2 * len(self._numbers), _FEW)
