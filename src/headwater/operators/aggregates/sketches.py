"""Aggregates that stay small whatever comes, for an error that is known: Apache DataSketches.

A partial result is a sketch as bytes, null where there was no value. Python goes through the groups,
and where the library has no other way through the values: its sketches are objects, one for each group.

Invariant: a distinct count depends on the values alone. Quantiles and top values depend on the split
as well, once there are more values than a sketch holds; both then keep to their error.
"""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import datasketches as ds
import numpy as np
import pyarrow as pa

from headwater.operators.aggregates.aggregate import Aggregate, check, is_any, is_number
from headwater.operators.aggregates.amounts import doubles
from headwater.operators.aggregates.by_group import present, together, valid
from headwater.operators.aggregates.hashing import hashes
from headwater.operators.aggregates.holdings import arrays, rank
from headwater.operators.event_time import Times
from headwater.operators.groups import Numbers

_DEVIATIONS = 2
"""Bounds of a distinct count are so many standard deviations away: they hold in 95 of 100 cases."""
_KLL_MOST = 65535


class Sketch(Aggregate):
    """An aggregate whose partial result is a sketch as bytes."""

    column: str

    def state(self, name: str, schema: pa.Schema) -> list[pa.Field]:
        """Return the sketch."""
        return [pa.field(f"{name}.sketch", pa.binary())]

    def partial(self, rows: pa.Table, at: Times, groups: Numbers, count: int) -> list[pa.Array]:
        """Make a sketch of the values of each group."""
        values, groups, _ = present(rows, self.column, groups)
        values, groups = self._sketchable(values, groups)
        indices, bounds = together(groups, count)
        ordered = values[indices]
        sketches = (self._sketch(ordered[begin:end]) if end > begin else None for begin, end in bounds)
        return [pa.array(sketches, pa.binary(), size=count)]

    def merge(self, partials: list[pa.Array], groups: Numbers, count: int) -> list[pa.Array]:
        """Unite the sketches of each group; a single one stays as it is."""
        return [pa.array(united(partials[0], groups, count, self._united), pa.binary(), size=count)]

    @abstractmethod
    def _sketchable(self, values: pa.Array, groups: Numbers) -> tuple[Any, Numbers]:
        """Return the values as the sketch takes them."""

    @abstractmethod
    def _sketch(self, values: Any) -> bytes:
        """Return a sketch of values."""

    @abstractmethod
    def _united(self, sketches: list[bytes]) -> bytes:
        """Return one sketch for several."""


def united(
    sketches: pa.Array, groups: Numbers, count: int, unite: Callable[[list[bytes]], bytes]
) -> Iterator[bytes | None]:
    """Yield the sketch of each group."""
    there = valid(sketches)
    indices, bounds = together(groups[there], count)
    parts = sketches.filter(pa.array(there)).take(pa.array(indices)).to_pylist()
    for begin, end in bounds:
        few = parts[begin:end]
        yield unite(few) if len(few) > 1 else few[0] if few else None


@dataclass(frozen=True)
class ApproxDistinct(Sketch):
    """About how many distinct values a column has: HyperLogLog."""

    column: str
    error: float = 0.02
    bounds: bool = False

    @property
    def _size(self) -> int:
        return _hll_size(self.error)

    def output(self, name: str, schema: pa.Schema) -> list[pa.Field]:
        """Return a BIGINT, never null, and its bounds."""
        check("approx_distinct", self.column, schema, is_any)
        names = [name, f"{name}_low", f"{name}_high"] if self.bounds else [name]
        return [pa.field(name, pa.int64(), nullable=False) for name in names]

    def finish(self, partials: list[pa.Array]) -> list[pa.Array]:
        """Return the estimates."""
        estimates = [self._estimates(sketch) for sketch in partials[0].to_pylist()]
        columns = [pa.array(column, pa.int64()) for column in zip(*estimates, strict=True)]
        columns = columns or [pa.array([], pa.int64())] * 3
        return columns if self.bounds else columns[:1]

    def _estimates(self, sketch: bytes | None) -> tuple[int, int, int]:
        if sketch is None:
            return 0, 0, 0
        union, once = ds.hll_union(self._size), ds.hll_sketch.deserialize(sketch)
        # A sketch that saw every value itself estimates by how they came. United with itself it is
        # none of those any more, and goes by what it holds, which is the same for the same values.
        union.update(once)
        union.update(once)
        bounds = union.get_lower_bound(_DEVIATIONS), union.get_upper_bound(_DEVIATIONS)
        return round(union.get_estimate()), int(bounds[0]), -int(-bounds[1] // 1)

    def _sketchable(self, values: pa.Array, groups: Numbers) -> tuple[Any, Numbers]:
        return hashes(values).view(np.int64), groups

    def _sketch(self, values: Any) -> bytes:
        sketch = ds.hll_sketch(self._size, ds.HLL_4)
        update = sketch.update
        for value in values.tolist():  # the library takes them one by one
            update(value)
        return bytes(sketch.serialize_compact())

    def _united(self, sketches: list[bytes]) -> bytes:
        union = ds.hll_union(self._size)
        for sketch in sketches:
            union.update(ds.hll_sketch.deserialize(sketch))
        return bytes(union.get_result(ds.HLL_4).serialize_compact())


@dataclass(frozen=True)
class Quantile(Sketch):
    """About the value that is not exceeded by a share ``q`` of the values: KLL. NaN counts as null."""

    column: str
    q: float | tuple[float, ...]
    error: float = 0.01
    bounds: bool = False
    exact: ClassVar[bool] = False

    @property
    def _size(self) -> int:
        return _kll_size(self.error)

    def output(self, name: str, schema: pa.Schema) -> list[pa.Field]:
        """Return a DOUBLE, or an array of them for several quantiles, and its bounds."""
        check("quantile", self.column, schema, is_number)
        kind = pa.list_(pa.float64()) if isinstance(self.q, tuple) else pa.float64()
        names = [name, f"{name}_low", f"{name}_high"] if self.bounds else [name]
        return [pa.field(name, kind) for name in names]

    def finish(self, partials: list[pa.Array]) -> list[pa.Array]:
        """Return the values at about the ranks that are asked for."""
        quantiles = self.q if isinstance(self.q, tuple) else (self.q,)
        estimates = [self._estimates(sketch, quantiles) for sketch in partials[0].to_pylist()]
        missing = ~valid(partials[0])
        return [
            self._column([row[part] for row in estimates], missing) for part in range(3 if self.bounds else 1)
        ]

    def _column(self, rows: list[list[float | None]], missing: Any) -> pa.Array:
        values = pa.array([value for row in rows for value in row], pa.float64())
        if not isinstance(self.q, tuple):
            return values
        return arrays(values, len(self.q), missing)

    def _estimates(self, sketch: bytes | None, quantiles: tuple[float, ...]) -> list[list[float | None]]:
        """Return the values at the ranks, and those an error below and above."""
        if sketch is None:
            return [[None] * len(quantiles)] * 3
        found = ds.kll_doubles_sketch.deserialize(sketch)
        error = found.normalized_rank_error(False) if found.is_estimation_mode() else 0.0
        # The rank is told as that of the middle of a value, so that no rounding makes it the next one.
        middles = [(rank(q, np.array(found.n)).item() + 0.5) / found.n for q in quantiles]
        return [
            found.get_quantiles([min(max(middle + off, 0.0), 1.0) for middle in middles], True)
            for off in (0.0, -error, error)
        ]

    def _sketchable(self, values: pa.Array, groups: Numbers) -> tuple[Any, Numbers]:
        floats = doubles(values) + 0.0  # zero has no sign: the sketch takes both as equal
        there = ~np.isnan(floats)
        return floats[there], groups[there]

    def _sketch(self, values: Any) -> bytes:
        sketch = ds.kll_doubles_sketch(self._size)
        sketch.update(values)
        return bytes(sketch.serialize())

    def _united(self, sketches: list[bytes]) -> bytes:
        union = ds.kll_doubles_sketch(self._size)
        for sketch in sketches:
            union.merge(ds.kll_doubles_sketch.deserialize(sketch))
        return bytes(union.serialize())


@cache
def _hll_size(error: float) -> int:
    """Return the size, as a power of two, at which a distinct count has such a standard error."""
    return next((size for size in range(7, 21) if _hll_error(size) <= error), 21)


@cache
def _kll_size(error: float) -> int:
    """Return the size at which ranks have such an error."""
    return bisect_left(range(_KLL_MOST), -error, lo=8, key=lambda size: -_kll_error(size))


def _hll_error(size: int) -> float:
    return float(ds.hll_sketch.get_rel_err(False, True, size, 1))


def _kll_error(size: int) -> float:
    return float(ds.kll_doubles_sketch.get_normalized_rank_error(size, False))
