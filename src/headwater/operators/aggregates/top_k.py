"""The most frequent values of a column, in a bounded place: the frequent-items sketch of DataSketches.

Each distinct value is counted as long as there is room for all of them; then those that are counted
least make room for others, and every count is known only within an error.

Invariant: a count that is told is never less than the true one, nor more than the error above it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import datasketches as ds
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.operators.aggregates.aggregate import Aggregate, check, is_moment, is_number
from headwater.operators.aggregates.by_group import listed, present, ranks_within, together, valid
from headwater.operators.aggregates.sketches import united
from headwater.operators.columns import one_array
from headwater.operators.event_time import Times
from headwater.operators.groups import Numbers, integer_type

_SMALLEST, _LARGEST = 10, 20
_ROOM = 16
"""For each value that is asked for there is room to count so many."""


@dataclass(frozen=True)
class TopK(Aggregate):
    """About the ``k`` most frequent values of a column with their counts, the most frequent first."""

    column: str
    k: int
    bounds: bool = False
    exact: ClassVar[bool] = False

    @property
    def _size(self) -> int:
        return min(max(math.ceil(math.log2(self.k * _ROOM)), _SMALLEST), _LARGEST)

    def output(self, name: str, schema: pa.Schema) -> list[pa.Field]:
        """Return an array of values and counts, and with bounds one for each bound of the counts."""
        kind = check("top_k", self.column, schema, _is_counted)
        out = [pa.field(name, pa.list_(_counted_type(kind)))]
        bounds = [pa.field(f"{name}_{bound}", pa.list_(pa.int64())) for bound in ("low", "high")]
        return out + bounds if self.bounds else out

    def state(self, name: str, schema: pa.Schema) -> list[pa.Field]:
        """Return the sketch, and nothing of the type of the column: for the type."""
        kind = schema.field(self.column).type
        return [pa.field(f"{name}.sketch", pa.binary()), pa.field(f"{name}.like", kind)]

    def partial(self, rows: pa.Table, at: Times, groups: Numbers, count: int) -> list[pa.Array]:
        """Count the values of each group."""
        values, groups, _ = present(rows, self.column, groups)
        counts = _counts(_texts(values), groups)
        of = counts.column("group").to_numpy()
        indices, bounds = together(of, count)
        counts = counts.take(pa.array(indices))
        texts, times = (counts.column(name).to_pylist() for name in ("text", "text_count"))
        sketches = (self._sketch(texts[b:e], times[b:e]) if e > b else None for b, e in bounds)
        return [pa.array(sketches, pa.binary(), size=count), pa.nulls(count, values.type)]

    def merge(self, partials: list[pa.Array], groups: Numbers, count: int) -> list[pa.Array]:
        """Unite the sketches of each group."""
        sketches = united(partials[0], groups, count, self._united)
        return [pa.array(sketches, pa.binary(), size=count), pa.nulls(count, partials[1].type)]

    def finish(self, partials: list[pa.Array]) -> list[pa.Array]:
        """Return the values that are counted most; of equal counts the least comes first."""
        items = _items(partials[0], self.k, partials[1].type)
        keys = [("group", "ascending"), ("order", "ascending"), ("value", "ascending")]
        items = items.take(pc.sort_indices(items, sort_keys=keys))
        groups = items.column("group").to_numpy()
        kept = ranks_within(groups) < self.k
        items, groups = items.filter(pa.array(kept)), groups[kept]
        value, count, low, high = (
            one_array(items.column(name)) for name in ("value", "count", "low", "high")
        )
        top = pa.StructArray.from_arrays([value, count], fields=list(_counted_type(value.type)))
        columns = (top, low, high) if self.bounds else (top,)
        return [listed(column, groups, len(partials[0]), ~valid(partials[0])) for column in columns]

    def _sketch(self, texts: list[str], times: list[int]) -> bytes:
        sketch = ds.frequent_strings_sketch(self._size)
        for value, weight in zip(texts, times, strict=True):  # the library takes them one by one
            sketch.update(value, weight)
        return bytes(sketch.serialize())

    def _united(self, sketches: list[bytes]) -> bytes:
        union = ds.frequent_strings_sketch(self._size)
        for sketch in sketches:
            union.merge(ds.frequent_strings_sketch.deserialize(sketch))
        return bytes(union.serialize())


def _is_counted(kind: pa.DataType) -> bool:
    return is_number(kind) or is_moment(kind) or pa.types.is_string(kind) or pa.types.is_boolean(kind)


def _counted_type(kind: pa.DataType) -> pa.DataType:
    return pa.struct([pa.field("value", kind), pa.field("count", pa.int64())])


def _counts(texts: pa.Array, groups: Numbers) -> pa.Table:
    """Return how often each text is in each group, in an order that depends on nothing else."""
    rows = pa.table({"group": groups, "text": texts})
    counts = rows.group_by(["group", "text"], use_threads=False).aggregate([("text", "count")])
    return counts.sort_by([("text", "ascending")])


def _texts(values: pa.Array) -> pa.Array:
    """Return values as texts, equal for equal values: the sketch counts texts."""
    kind = values.type
    if pa.types.is_floating(kind):
        floats = values.to_numpy() + kind.to_pandas_dtype()(0)  # zero has no sign
        return pa.array(floats, kind).cast(pa.string())
    if is_moment(kind):
        return values.cast(integer_type(kind)).cast(pa.string())
    return values.cast(pa.string())


def _values(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return the values that have these texts."""
    if is_moment(kind):
        return texts.cast(integer_type(kind)).cast(kind)
    return texts.cast(kind)


def _most(sketch: bytes, k: int) -> list[tuple[str, int, int, int]]:
    """Return the ``k`` items that are counted most, and those counted as often as the last of them."""
    items = ds.frequent_strings_sketch.deserialize(sketch).get_frequent_items(ds.NO_FALSE_NEGATIVES)
    if len(items) <= k:
        return list(items)
    least = sorted([item[1] for item in items], reverse=True)[k - 1]
    return [item for item in items if item[1] >= least]


def _items(sketches: pa.Array, k: int, kind: pa.DataType) -> pa.Table:
    """Return what the sketches count most: a value, its count and the bounds of it in each row."""
    found = [
        (group, *item)
        for group, sketch in enumerate(sketches.to_pylist())
        if sketch is not None
        for item in _most(sketch, k)
    ]
    columns = list(zip(*found, strict=True)) or [()] * 5
    group, count, low, high = (np.array(columns[part], np.int64) for part in (0, 2, 3, 4))
    value = _values(pa.array(columns[1], pa.string()), kind)
    return pa.table(
        {"group": group, "order": -count, "value": value, "count": count, "low": low, "high": high}
    )
