"""Sums of floats without any rounding, so that no order of adding them makes a difference.

A sum is a number in base 2**32 whose lowest place is the lowest bit that any float has. Each float is
cut at the borders of the places, which loses nothing, and the pieces are added place by place, as
integers. A partial sum is stored as its digits from the first to the last that matters: three or four
of them for numbers of about the same size, up to 66 for numbers of all sizes.

Invariant: a stored sum is the exact sum; equal sums are stored as equal digits.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.operators.aggregates.by_group import lengths, lists_of
from headwater.operators.groups import Numbers

Floats = npt.NDArray[np.float64]

_BITS = 32
_MASK = np.int64((1 << _BITS) - 1)
_FLOOR = -1074
"""The exponent of the lowest bit of the smallest float."""
_BLOCK = 1 << 20
"""So many pieces of 32 bits add up to less than 53 bits: exact in a float, which numpy adds the fastest."""
_BAND = 512
"""Squares of floats whose exponents differ by less than this neither overflow nor lose bits."""


class Places(NamedTuple):
    """What each group has at each place: the number of the lowest place, and a column for each from there."""

    first: int
    sums: Numbers


def fields(name: str) -> list[pa.Field]:
    """Return the columns of a stored sum: the place of its first digit, and its digits."""
    return [pa.field(f"{name}.first", pa.int16()), pa.field(f"{name}.digits", pa.list_(pa.int32()))]


def summed(values: Floats, groups: Numbers, count: int) -> Places:
    """Return the sum of the floats of each group; none of them is infinite or NaN."""
    found: list[Numbers] = []
    place, rest = _highest(values) + 1, values
    while rest.any():
        place -= 1
        unit = _BITS * place + _FLOOR
        # What is too small to be told at this scale is less than one, and so left for a lower place.
        pieces = np.trunc(_scaled(rest, -unit))
        rest = rest - pieces * 2.0**unit
        found.append(_added(pieces, groups, count))
    return Places(max(place, 0), np.stack(found[::-1], axis=1) if found else np.zeros((count, 0), np.int64))


def squared(values: Floats, groups: Numbers, count: int) -> Places:
    """Return the sum of the squares of the floats of each group, exact as well."""
    bands = np.rint(np.frexp(values)[1] / _BAND).astype(np.int64)
    found = [Places(0, np.zeros((count, 0), np.int64))]
    for band in np.unique(bands).tolist():
        rows = np.flatnonzero(bands == band)
        high, low = _square(np.ldexp(values[rows], -_BAND * band))
        both = summed(np.concatenate([high, low]), np.tile(groups[rows], 2), count)
        found.append(Places(both.first + 2 * _BAND * band // _BITS, both.sums))
    return _aligned(found, count)


def stored(places: Places) -> list[pa.Array]:
    """Return sums as columns: each place's carry goes to the next, and the last digit has the sign."""
    digits = _carried(places.sums)
    first = np.argmax(digits != 0, axis=1)
    end = _ends(digits)
    place = np.arange(digits.shape[1])
    kept = (place >= first[:, None]) & (place < end[:, None])
    starts = np.where(end > 0, first + places.first, 0).astype(np.int16)
    offsets = np.append(0, np.cumsum(kept.sum(axis=1))).astype(np.int32)
    flat = digits[kept].astype(np.uint32).view(np.int32)
    return [pa.array(starts), pa.ListArray.from_arrays(pa.array(offsets), pa.array(flat))]


def merged(columns: list[pa.Array], groups: Numbers, count: int) -> Places:
    """Return what stored sums come to by group."""
    starts, lists = columns
    of, length = lists_of(lists), lengths(lists)
    if not len(of):
        return Places(0, np.zeros((count, 0), np.int64))
    within = np.arange(len(of)) - np.repeat(np.cumsum(length) - length, length)
    place = starts.to_numpy().astype(np.int64)[of] + within
    signed = lists.flatten().to_numpy().astype(np.int64)
    digits = np.where(within == length[of] - 1, signed, signed & _MASK)
    first, width = int(place.min()), int(place.max() - place.min()) + 1
    sums = np.zeros(count * width, np.int64)
    np.add.at(sums, groups[of] * width + place - first, digits)
    return Places(first, sums.reshape(count, width))


def numbers(columns: list[pa.Array]) -> list[tuple[int, int]]:
    """Return each stored sum as an integer and an exponent: the sum is integer * 2**exponent.

    From here on Python computes: no number of the machine's holds as many bits, and a group is
    finished once, not once for each of its rows.
    """
    starts, lists = columns
    flat = lists.flatten().to_numpy().tobytes()
    ends = 4 * np.cumsum(lengths(lists))
    return [
        (int.from_bytes(flat[begin:end], "little", signed=True), _BITS * first + _FLOOR)
        for begin, end, first in zip([0, *ends.tolist()], ends.tolist(), starts.to_pylist(), strict=False)
    ]


def ratio(number: int, exponent: int, divisor: int = 1) -> float:
    """Return number * 2**exponent / divisor as the nearest float; infinite where there is none."""
    try:
        return (number << exponent) / divisor if exponent >= 0 else number / (divisor << -exponent)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def _highest(values: Floats) -> int:
    """Return the number of the highest place of any of the values, -1 if all are zero."""
    greatest = float(np.abs(values).max(initial=0.0))
    return (math.frexp(greatest)[1] - 1 - _FLOOR) // _BITS if greatest else -1


def _scaled(values: Floats, exponent: int) -> Floats:
    """Return values * 2**exponent, also where 2**exponent is no float."""
    half = exponent // 2
    return values * 2.0**exponent if exponent < 1024 else values * 2.0**half * 2.0 ** (exponent - half)


def _added(pieces: Floats, groups: Numbers, count: int) -> Numbers:
    sums = np.zeros(count, np.int64)
    for start in range(0, len(pieces), _BLOCK):
        block = slice(start, start + _BLOCK)
        sums += np.bincount(groups[block], pieces[block], minlength=count).astype(np.int64)
    return sums


def _square(values: Floats) -> tuple[Floats, Floats]:
    """Return squares as the nearest float and what is left: Dekker's product, which is exact."""
    square = values * values
    wide = values * float((1 << 27) + 1)
    high = wide - (wide - values)
    low = values - high
    return square, ((high * high - square) + 2 * high * low) + low * low


def _aligned(parts: list[Places], count: int) -> Places:
    """Return several sums of the same groups as one."""
    first = min((part.first for part in parts if part.sums.shape[1]), default=0)
    end = max((part.first + part.sums.shape[1] for part in parts if part.sums.shape[1]), default=0)
    sums = np.zeros((count, end - first), np.int64)
    for part in parts:
        start = part.first - first if part.sums.shape[1] else 0
        sums[:, start : start + part.sums.shape[1]] += part.sums
    return Places(first, sums)


def _carried(sums: Numbers) -> Numbers:
    """Return digits of 32 bits, one more than there were places: two's complement."""
    count, width = sums.shape
    digits, carry = np.zeros((count, width + 1), np.int64), np.zeros(count, np.int64)
    for place in range(width):
        told = sums[:, place] + carry
        digits[:, place], carry = told & _MASK, told >> _BITS
    digits[:, width] = carry & _MASK
    return digits


def _ends(digits: Numbers) -> Numbers:
    """Return how many digits matter: the last ones do not if they only repeat the sign of the one before."""
    below = np.pad(digits, ((0, 0), (1, 0)))[:, :-1]
    matters = digits != np.where(below >> (_BITS - 1) == 1, _MASK, 0)
    width = digits.shape[1]
    return np.where(matters.any(axis=1), width - np.argmax(matters[:, ::-1], axis=1), 0)
