"""Values as whole numbers in their order, one or several for each, so that runs are sorted by them.

Numbers, times and booleans are one digit of 64 bits. Texts, bytes and long decimals are bytes, and a digit is
seven of them with how many there are, the next digit the seven behind: of two values that differ, the first
digit in which they do tells their order.

Invariant: ``restored`` gives the values back, to the bit but for those of NaN.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from headwater.operators.columns import one_array
from headwater.operators.groups import Numbers, integer_type
from headwater.operators.order import sortable_bits

_WIDTH = 7
_SIGN = np.int64(-(1 << 63))
_LONG = 18
"""Decimals of so many digits are one whole number."""


def has_one_digit(kind: pa.DataType) -> bool:
    """Tell whether a value of a type is one whole number."""
    if pa.types.is_decimal(kind):
        return bool(kind.precision <= _LONG)
    return bool(
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_temporal(kind)
        or pa.types.is_boolean(kind)
    )


def single_digits(column: pa.Array) -> Numbers:
    """Return values, none of them null, of a type whose values have one digit."""
    kind = column.type
    if pa.types.is_floating(kind):
        floats = column.cast(pa.float64()).to_numpy(zero_copy_only=False).copy()
        floats[np.isnan(floats)] = np.nan
        return sortable_bits(floats.view(np.int64))
    if pa.types.is_decimal(kind):
        return decimal_words(column)[0].copy()
    plain = column.cast(integer_type(kind)) if pa.types.is_temporal(kind) else column
    numbers: Numbers = plain.cast(pa.int64()).to_numpy(zero_copy_only=False)
    return numbers


def from_single_digits(numbers: Numbers, kind: pa.DataType) -> pa.Array:
    """Return what ``single_digits`` was made of."""
    if pa.types.is_floating(kind):
        return pa.array(sortable_bits(numbers).view(np.float64)).cast(kind)
    if pa.types.is_decimal(kind):
        return _decimals(numbers, numbers >> 63, kind)
    if pa.types.is_temporal(kind):
        return pa.array(numbers).cast(integer_type(kind)).cast(kind)
    return pa.array(numbers).cast(kind)


def as_bytes(column: pa.Array) -> pa.Array:
    """Return values, none of them null, as bytes that have their order."""
    if not pa.types.is_decimal(column.type):
        return column.cast(pa.binary())
    low, high = decimal_words(column)
    words = np.stack([high ^ _SIGN, low], axis=1).astype(">i8")
    offsets = pa.array(np.arange(len(column) + 1, dtype=np.int32) * 16)
    return pa.Array.from_buffers(
        pa.binary(), len(column), [None, offsets.buffers()[1], pa.py_buffer(words.tobytes())]
    )


def from_bytes(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return what ``as_bytes`` was made of."""
    if not pa.types.is_decimal(kind):
        return column.cast(kind)
    data = b"".join(one_array(column).to_pylist())
    words = np.frombuffer(data, ">i8").astype(np.int64).reshape(-1, 2)
    return _decimals(words[:, 1], words[:, 0] ^ _SIGN, kind)


def digit(column: pa.Array, place: int) -> Numbers:
    """Return the digit of each value at a place, given as bytes."""
    offsets = np.frombuffer(column.buffers()[1], np.int32)[column.offset :][: len(column) + 1]
    offsets = offsets.astype(np.int64)
    size = offsets[1:] - offsets[:-1] - _WIDTH * place
    data = column.buffers()[2]
    bytes_ = np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(1, np.uint8)
    found = np.zeros((len(column), _WIDTH + 1), np.uint8)
    for n in range(_WIDTH):
        there = np.flatnonzero(size > n)
        found[there, n] = bytes_[offsets[there] + _WIDTH * place + n]
    # One that goes on behind its seven bytes comes after the one that ends there.
    found[:, _WIDTH] = np.clip(size, 0, _WIDTH + 1)
    return (found.view(">u8")[:, 0] ^ np.uint64(1 << 63)).astype(np.uint64).view(np.int64)


def decimal_words(column: pa.Array) -> tuple[Numbers, Numbers]:
    """Return the unscaled values of decimals, none of them null: the lower 64 bits of each, and the upper."""
    column = column.cast(pa.decimal128(38, column.type.scale))
    words = np.frombuffer(column.buffers()[1], np.int64)[2 * column.offset :][: 2 * len(column)]
    return words[::2], words[1::2]


def _decimals(low: Numbers, high: Numbers, kind: pa.DataType) -> pa.Array:
    data = pa.py_buffer(np.stack([low, high], axis=1).tobytes())
    return pa.Array.from_buffers(pa.decimal128(38, kind.scale), len(low), [None, data]).cast(kind)
