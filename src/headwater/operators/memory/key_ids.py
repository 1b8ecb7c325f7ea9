"""Keys as numbers that last (ids), so that what is known of a key is found by a number, and many at once.

Invariant: a key that something is held of keeps its number, which tells its slot; a number is never given
twice.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from headwater.operators.groups import Numbers
from headwater.operators.memory.entries import Entries, newest
from headwater.operators.memory.key_hash import KeyHashes
from headwater.operators.memory.slots import next_numbers, slots_of_hashes
from headwater.operators.memory.sorted_runs import SortedRuns

_FEW = 1024
_ID = pa.schema([("id", pa.int64())])


class KeyIds:
    """Keys as numbers that stay the same while a state holds something of the key."""

    def __init__(self) -> None:
        self.runs = SortedRuns(_ID.empty_table(), newest)
        self.given = 0
        """How many numbers were given so far."""
        self.known = 0
        """How many keys have one now."""
        self.crowd = _FEW
        """At how many it is time to ask which of them are still held."""

    def __len__(self) -> int:
        return self.known

    @property
    def crowded(self) -> bool:
        """Whether it is time to ask which of the keys are still held."""
        return self.known > self.crowd

    @property
    def counters(self) -> dict[str, tuple[object, str]]:
        """The numbers that are to be stored with the runs, as ``OperatorMemory`` takes them."""
        return {name: (self, name) for name in ("given", "known", "crowd")}

    def numbers(self, keys: KeyHashes) -> Numbers:
        """Return the number of each key, each key once; a new one gets the next."""
        found = self.runs.find(*keys).numbers("id", -1)
        new = np.flatnonzero(found < 0)
        found[new] = next_numbers(self.given, slots_of_hashes(keys.high[new]))
        self._add(keys.take(new), found[new])
        self.given += len(new)
        self.known += len(new)
        return found

    def keep(self, held: Numbers) -> None:
        """Forget the keys whose numbers are not among those that are held."""
        entries = self.runs.all()
        kept = entries.take(np.flatnonzero(np.isin(entries.rows.column("id").to_numpy(), held)))
        self.runs = SortedRuns(_ID.empty_table(), newest)
        self.runs.add(kept)
        self.known, self.crowd = len(kept), max(2 * len(kept), _FEW)

    def _add(self, keys: KeyHashes, numbers: Numbers) -> None:
        self.runs.add(Entries(*keys, pa.table([pa.array(numbers)], schema=_ID)))
