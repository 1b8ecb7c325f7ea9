"""Keys as two numbers that are the same in every process and release, so that a key is found in sorted runs.

The numbers are two hashes of a key, 127 bits together, of which texts have SipHash under two keys of its own:
keys of which all bits are equal are taken for one. Among a thousand million keys that happens with a
probability of 3 in 10^21. A whole number by itself has numbers that no other one has.

Invariant: keys that are equal as ``headwater.operators.groups`` has it have equal numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.operators.columns import plain_values
from headwater.operators.groups import Numbers, grouped, plain_columns
from headwater.operators.memory.entries import arranged, opening

_SECRETS = ("headwater.high.1", "headwater.low..1")
_SALTS = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD1B54A32D192ED03))
_NULLS = (np.uint64(0x6A09E667F3BCC909), np.uint64(0xBB67AE8584CAA73B))
"""What stands for null: two numbers that no value has together."""

NO_KEY = -1
"""The second number of a key that is equal to none, as one with a null is in a join."""

Lane = npt.NDArray[np.uint64]


class KeyHashes(NamedTuple):
    """Keys, each as two numbers."""

    high: Numbers
    low: Numbers

    def take(self, indices: npt.NDArray[np.generic]) -> KeyHashes:
        """Return some of the keys, by their indices or by flags."""
        return KeyHashes(self.high[indices], self.low[indices])


def numbered(keys: KeyHashes) -> Numbers:
    """Number distinct keys."""
    indices = arranged(*keys)
    numbers = np.empty(len(indices), np.int64)
    numbers[indices] = np.cumsum(opening(keys.high[indices], keys.low[indices])) - 1
    return numbers


@dataclass(frozen=True)
class HashedGroups:
    """Rows by key: the group ``of`` each row, each group's ``first`` row, and its key as two numbers."""

    of: Numbers
    first: Numbers
    keys: KeyHashes


def hashed_groups(rows: pa.Table, by: Sequence[str]) -> HashedGroups:
    """Group rows by the values of some columns."""
    columns = plain_columns(rows, by)
    of, first = grouped(columns)
    if len(first) < len(of):
        columns = [column.take(pa.array(first)) for column in columns]
    return HashedGroups(of, first, hashes(columns, len(first)))


def hashes(columns: Sequence[pa.Array], count: int) -> KeyHashes:
    """Return the numbers of keys, given the plain columns of each."""
    high, low = _lanes(columns, count, (0, 1))
    # One bit less, so that there is always a greater number.
    return KeyHashes(high.view(np.int64), (low >> np.uint64(1)).view(np.int64))


def first_halves(columns: Sequence[pa.Array], count: int) -> Numbers:
    """Return the first numbers of keys, given the plain columns of each."""
    (high,) = _lanes(columns, count, (0,))
    return high.view(np.int64)


def _lanes(columns: Sequence[pa.Array], count: int, which: Sequence[int]) -> list[Lane]:
    """Return some of the two numbers of keys."""
    lanes = [np.full(count, _SALTS[number]) for number in which]
    for column in columns:
        lanes = [_mixed(lane ^ value) for lane, value in zip(lanes, _values(column, which), strict=True)]
    return lanes


def _values(column: pa.Array, which: Sequence[int]) -> list[Lane]:
    """Return some of the two numbers for each value, nulls too."""
    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        lanes = [plain_values(column.cast(pa.int64())).astype(np.int64).view(np.uint64)] * len(which)
    else:
        lanes = _sip_hashes(column if _is_text(kind) else column.cast(pa.string()), which)
    if not column.null_count:
        return lanes
    missing = column.is_null().to_numpy(zero_copy_only=False)
    return [np.where(missing, _NULLS[number], lane) for number, lane in zip(which, lanes, strict=True)]


def _sip_hashes(column: pa.Array, which: Sequence[int]) -> list[Lane]:
    from pandas.util import hash_array  # takes long to load, and whole numbers need none

    filled = column.fill_null("" if pa.types.is_string(column.type) else b"") if column.null_count else column
    objects = filled.to_numpy(zero_copy_only=False)
    return [hash_array(objects, hash_key=_SECRETS[number], categorize=False) for number in which]


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_binary(kind))


def _mixed(numbers: Lane) -> Lane:
    """Spread numbers, each onto another one (the finalizer of splitmix64)."""
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return numbers ^ (numbers >> np.uint64(31))
