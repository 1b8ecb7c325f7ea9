"""A Bloom filter of the values of a column: whether a value may be among them, in a bounded place.

It is bits, of which each value sets a few that its hash tells; a value of which one is not set was
never there. The first byte says how many bits a value sets, so a filter can be asked by itself.

Invariant: a value that was there is always told to be; filters of equal values are equal bytes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.errors import UsageError
from headwater.operators.aggregates.aggregate import check, is_integer, is_moment
from headwater.operators.aggregates.hashing import Hashes, hashes
from headwater.operators.aggregates.sketches import Sketch
from headwater.operators.groups import Numbers

_SKIP = np.uint64(32)


@dataclass(frozen=True)
class Bloom(Sketch):
    """A filter that tells whether a value may be among those of a column."""

    column: str
    expected: int = 10_000
    error: float = 0.01

    @property
    def _bits(self) -> int:
        wanted = -self.expected * math.log(self.error) / math.log(2) ** 2
        return 64 * math.ceil(wanted / 64)

    @property
    def _hashes_per_value(self) -> int:
        return min(max(round(self._bits / self.expected * math.log(2)), 1), 255)

    def output(self, name: str, schema: pa.Schema) -> list[pa.Field]:
        """Return the filter."""
        check("bloom", self.column, schema, _is_hashed)
        return [pa.field(name, pa.binary())]

    def finish(self, partials: list[pa.Array]) -> list[pa.Array]:
        """Return the filters."""
        return partials

    def _sketchable(self, values: pa.Array, groups: Numbers) -> tuple[Any, Numbers]:
        return hashes(values), groups

    def _sketch(self, values: Any) -> bytes:
        bits = np.zeros(self._bits, np.bool_)
        bits[_bit_positions(values, self._hashes_per_value, self._bits)] = True
        return bytes([self._hashes_per_value]) + np.packbits(bits).tobytes()

    def _united(self, sketches: list[bytes]) -> bytes:
        parts = np.stack([np.frombuffer(sketch, np.uint8, offset=1) for sketch in sketches])
        return sketches[0][:1] + bytes(np.bitwise_or.reduce(parts, axis=0))


def may_contain(bloom: bytes, values: Iterable[Any] | pa.Array) -> list[bool]:
    """Tell of each value whether it may be in a filter; what was put in always is.

    - ``bloom``: the filter, as ``agg.bloom`` gives it.
    - ``values``: a list or an Arrow array, of the type of the column: texts for STRING, integers for any
      integer type, and so on; no nulls.

    >>> from headwater import agg
    >>> (seen,) = agg.bloom("user").over(pa.table({"user": ["ada", "bob"]}))
    >>> agg.may_contain(seen, ["ada", "eve"])
    [True, False]
    """
    array = values if isinstance(values, pa.Array) else pa.array(values)
    if not len(array) and pa.types.is_null(array.type):  # an empty list has no type
        return []
    if array.null_count or not _is_hashed(array.type):
        raise UsageError("a filter cannot be asked for such values", detail=f"they are {array.type}")
    bits = np.unpackbits(np.frombuffer(bloom, np.uint8, offset=1))
    answers = np.all(bits[_bit_positions(hashes(array), bloom[0], len(bits))], axis=1)
    return [bool(may) for may in answers]


def _bit_positions(values: Hashes, per_value: int, bits: int) -> Hashes:
    """Return the bits of each value: where they begin, and how far they are apart, is in its hash."""
    step = (values >> _SKIP) | np.uint64(1)
    positions = np.add(values[:, None], np.multiply.outer(step, np.arange(per_value, dtype=np.uint64)))
    return np.asarray(np.remainder(positions, np.uint64(bits)), np.uint64)


def _is_hashed(kind: pa.DataType) -> bool:
    texts = pa.types.is_string(kind) or pa.types.is_binary(kind)
    return (
        texts
        or is_integer(kind)
        or is_moment(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_boolean(kind)
    )
