"""The slot of a key, one of 256 logical buckets: what an operator holds of a key can be moved with its slot.

The keys of an operator are spread over 256 slots, and the slots over as many buckets as a node has. Entries
of all containers tell their slot: by the hash of the key that they lie under, or by a number that was given
for it, of which the last eight bits are the slot. So the numbers of two slots never meet, and a state is
divided anew without a look at anything but its entries (``redistribution.py``).

Invariant: everything that is held of a key tells the slot in which its rows arrive.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from headwater.operators.groups import Numbers, plain_columns
from headwater.operators.memory.entries import Entries
from headwater.operators.memory.key_hash import first_halves

SLOTS = 256
_BITS = 8
SlotOf = Callable[[Entries], Numbers]
"""Tells the slots of entries."""


def slots_of_keys(rows: pa.Table, key: Sequence[str]) -> Numbers:
    """Return the slot of each row by the columns of its key."""
    return slots_of_hashes(first_halves(plain_columns(rows, key), len(rows)))


def slots_of_hashes(high: Numbers) -> Numbers:
    """Return the slots of keys by the first halves of their hashes: in the same order."""
    return (high >> (64 - _BITS)) + SLOTS // 2


def slots_of_numbers(numbers: Numbers) -> Numbers:
    """Return the slots for which numbers were given, or the complements of such."""
    return np.where(numbers < 0, ~numbers, numbers) & (SLOTS - 1)


def next_numbers(given: int, slots: Numbers) -> Numbers:
    """Return numbers for slots, in order, after so many that were given."""
    return (np.arange(given, given + len(slots)) << _BITS) | slots


def by_hash(entries: Entries) -> Numbers:
    """Tell the slots of entries whose first number is that of a key."""
    return slots_of_hashes(entries.major)


def by_major(entries: Entries) -> Numbers:
    """Tell the slots of entries whose first number was given."""
    return slots_of_numbers(entries.major)


def by_minor(entries: Entries) -> Numbers:
    """Tell the slots of entries whose second number was given."""
    return slots_of_numbers(entries.minor)


def by_column(name: str) -> SlotOf:
    """Return what tells the slots of entries that have a given number in a column."""
    return lambda entries: slots_of_numbers(entries.rows.column(name).to_numpy())


def by_columns(key: Sequence[str]) -> SlotOf:
    """Return what tells the slots of entries that have the columns of a key."""
    return lambda entries: slots_of_keys(entries.rows, key)
