"""Which bucket a row belongs to: a hash of its key, the same in every process and every release.

Invariant: rows whose keys are equal have the same bucket, whatever else differs between them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headwater.values.keys import murmur2

_t = pa.types
VERSION = 1
"""Raised when a key may have another bucket than before: states of before are refused then."""


def buckets(rows: pa.Table, key: Sequence[str], count: int) -> npt.NDArray[np.int32]:
    """Return the bucket, of ``count``, of each row."""
    mixed = np.zeros(rows.num_rows, np.uint64)
    for name in key:
        mixed = _mix(mixed * np.uint64(31) + _hashes(_joined(rows.column(name))))
    return (mixed % np.uint64(count)).astype(np.int32)


def _hashes(column: pa.Array) -> npt.NDArray[np.uint64]:
    """Return a number for each value; those of equal values are equal."""
    kind = column.type
    if _t.is_string(kind) or _t.is_binary(kind):
        return murmur2(column.fill_null("" if _t.is_string(kind) else b"").cast(pa.binary())).astype(
            np.uint64
        )
    if _t.is_floating(kind):
        numbers = column.cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False) + 0.0  # no -0.0
        bits: npt.NDArray[np.uint64] = np.where(np.isnan(numbers), np.nan, numbers).view(np.uint64)
        return bits
    if _t.is_integer(kind) or _t.is_boolean(kind) or _t.is_date32(kind) or _t.is_timestamp(kind):
        return _integers(column).view(np.uint64)
    if _t.is_decimal(kind):
        return _hashes(column.cast(pa.string()))
    # Keys that are structs, lists or maps are rare, and Arrow has no form of their values to hash.
    return _hashes(pa.array(map(str, column.to_pylist()), pa.string()))


def _integers(column: pa.Array) -> npt.NDArray[np.int64]:
    if _t.is_date32(column.type):
        column = column.cast(pa.int32())
    numbers: npt.NDArray[np.int64] = (
        pc.fill_null(column.cast(pa.int64()), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    )
    return numbers


def _mix(numbers: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Spread numbers that are close to each other (the finalizer of splitmix64)."""
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return numbers ^ (numbers >> np.uint64(31))


def _joined(column: pa.ChunkedArray) -> pa.Array:
    joined = column.combine_chunks()
    return pa.concat_arrays(joined.chunks) if isinstance(joined, pa.ChunkedArray) else joined
