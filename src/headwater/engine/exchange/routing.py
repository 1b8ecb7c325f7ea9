"""Which bucket a row belongs to: the one that has the slot of its key.

Buckets have slots that lie side by side, so that each has as many as the others, or one more.

Invariant: rows whose keys are equal have the same bucket, whatever else differs between them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.operators.groups import Numbers
from headwater.operators.memory.slots import SLOTS, slots_of_keys

VERSION = 2
"""Raised when a key may have another slot than before: states of before are refused then."""


def buckets(rows: pa.Table, key: Sequence[str], count: int) -> npt.NDArray[np.int32]:
    """Return the bucket, of ``count``, of each row."""
    return owners(count)[slots_of_keys(rows, key)].astype(np.int32)


def owners(count: int) -> Numbers:
    """Return the bucket, of ``count``, that has each slot."""
    return np.arange(SLOTS) * count // SLOTS
