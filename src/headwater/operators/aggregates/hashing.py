"""Values as 64-bit numbers that look random: what sketches are made of.

Python's own ``hash`` of a text is another one in each process, so it cannot be stored.

Invariant: equal values have equal hashes, in every process and on every machine, and nulls are not
asked. This is part of what is stored: a change here makes every sketch that is stored useless.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headwater.operators.groups import text

Hashes = npt.NDArray[np.uint64]

_STEP = np.uint64(0x9E3779B97F4A7C15)


def hashes(values: pa.Array) -> Hashes:
    """Return the hash of each value; zero has no sign, and all NaNs are one."""
    kind = values.type
    if pa.types.is_nested(kind):
        return _of_texts(text(values))
    if pa.types.is_decimal(kind):
        return _of_texts(values.cast(pa.string()))
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return _of_texts(values)
    return _mixed(_bits(values))


def _bits(values: pa.Array) -> Hashes:
    kind = values.type
    if pa.types.is_floating(kind):
        floats = values.cast(pa.float64()).to_numpy() + 0.0
        return np.where(np.isnan(floats), np.nan, floats).view(np.uint64)
    if pa.types.is_temporal(kind) and kind.bit_width == 32:
        values = values.cast(pa.int32())
    return np.asarray(values.cast(pa.int64())).view(np.uint64)


def _of_texts(values: pa.Array) -> Hashes:
    """Return hashes of texts or bytes: each byte times a random number for its place, all added up."""
    length = pc.binary_length(values).to_numpy().astype(np.int64)
    ends = np.cumsum(length)
    content = _content(values)
    place = np.arange(len(content)) - np.repeat(ends - length, length)
    factors = _mixed(np.arange(length.max(initial=0), dtype=np.uint64)) | np.uint64(1)
    terms = (content.astype(np.uint64) + np.uint64(1)) * factors[place]
    # The sum of all terms wraps around; so do differences, which are right all the same.
    total = np.append(np.uint64(0), np.cumsum(terms, dtype=np.uint64))
    return _mixed((total[ends] - total[ends - length]) ^ _mixed(length.astype(np.uint64)))


def _content(values: pa.Array) -> npt.NDArray[np.uint8]:
    """Return the bytes of all values, one after the other."""
    if not len(values):
        return np.empty(0, np.uint8)
    plain = values.cast(pa.binary())
    _, offsets, data = plain.buffers()
    bounds = np.frombuffer(offsets, np.int32)[plain.offset : plain.offset + len(plain) + 1]
    if data is None:
        return np.empty(0, np.uint8)
    return np.frombuffer(data, np.uint8)[bounds[0] : bounds[-1]]


def _mixed(numbers: Hashes) -> Hashes:
    """Return numbers whose every bit depends on all bits of the given ones (the mixer of SplitMix64)."""
    mixed = numbers + _STEP
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(mixed ^ (mixed >> np.uint64(31)))
