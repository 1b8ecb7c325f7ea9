"""Values in order, to which some are added and from which some are taken: the least are at hand.

The values lie in runs of a bounded length, so that one more moves few others, however many there are.

Invariant: what is held depends on the values that are there, and not on those that were.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.operators.groups import integer_type
from headwater.operators.order import sortable_bits
from headwater.operators.values import values

_RUN = 1024


class SortedMultiset:
    """Comparable values in order; equal ones are held as often as they were added."""

    def __init__(self) -> None:
        self._runs: list[list[Any]] = []
        self._lasts: list[Any] = []
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, new: list[Any]) -> None:
        """Add values."""
        if 8 * len(new) > self._count:
            return self._remake(new)
        for value in new:
            self._insert(value)
        self._count += len(new)
        return None

    def remove(self, value: Any) -> None:
        """Take a value out that is there."""
        at = bisect_left(self._lasts, value)
        run = self._runs[at]
        del run[bisect_left(run, value)]
        self._count -= 1
        if run:
            self._lasts[at] = run[-1]
        else:
            del self._runs[at], self._lasts[at]

    def least(self) -> Any:
        """Return the least value."""
        return self._runs[0][0]

    def greatest(self, count: int) -> list[Any]:
        """Return some of the values, or all: the greatest ones, the greatest first."""
        found: list[Any] = []
        for run in reversed(self._runs):
            if len(found) >= count:
                break
            found += run[: -(count - len(found)) - 1 : -1]
        return found

    def _insert(self, value: Any) -> None:
        at = min(bisect_right(self._lasts, value), len(self._runs) - 1)
        run = self._runs[at]
        insort(run, value)
        if len(run) <= 2 * _RUN:
            self._lasts[at] = run[-1]
            return
        self._runs[at : at + 1] = run[:_RUN], run[_RUN:]
        self._lasts[at : at + 1] = run[_RUN - 1], run[-1]

    def _remake(self, new: list[Any]) -> None:
        together = sorted([*(value for run in self._runs for value in run), *new])
        self._runs = [together[start : start + _RUN] for start in range(0, len(together), _RUN)]
        self._lasts = [run[-1] for run in self._runs]
        self._count = len(together)


def comparable(column: pa.Array) -> list[Any]:
    """Return the values of a column, none of them null, as Python values in their order."""
    kind = column.type
    if pa.types.is_floating(kind):
        floats = column.cast(pa.float64()).to_numpy(zero_copy_only=False).copy()
        floats[np.isnan(floats)] = np.nan
        listed: list[Any] = sortable_bits(floats.view(np.int64)).tolist()
        return listed
    return values(column.cast(integer_type(kind)) if pa.types.is_temporal(kind) else column)


def restored(comparables: list[Any], kind: pa.DataType) -> pa.Array:
    """Return what ``comparable`` has made of values as a column of their type; None as null."""
    if pa.types.is_floating(kind):
        missing = np.array([value is None for value in comparables], np.bool_)
        bits = np.array([0 if value is None else value for value in comparables], np.int64)
        return pa.array(sortable_bits(bits).view(np.float64), mask=missing).cast(kind)
    if pa.types.is_temporal(kind):
        return pa.array(comparables, integer_type(kind)).cast(kind)
    return pa.array(comparables, kind)
