"""Keys as numbers: rows are grouped in bulk, and Python sees each distinct key once.

Keys are equal as Spark's ``groupBy`` has it: null equals null, NaN equals NaN, and zero has no sign.

Invariant: groups are numbered in the order in which their keys first appear, and equal keys are
equal as Python values whichever rows they came from, so that a dict can hold what is known of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.operators.columns import one_array
from headwater.operators.values import values

Numbers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Keys = npt.NDArray[np.object_]
"""Keys as a dict can hold them: the value of the one key column, or a tuple of several."""


@dataclass(frozen=True)
class Groups:
    """Rows by key: the group ``of`` each row, and each group's ``first`` row and key."""

    of: Numbers
    first: Numbers
    keys: Keys


def group(rows: pa.Table, by: Sequence[str]) -> Groups:
    """Group rows by the values of some columns."""
    columns = plain_columns(rows, by)
    of, first = grouped(columns)
    return Groups(of, first, _keys([column.take(pa.array(first)) for column in columns]))


def plain_columns(rows: pa.Table, by: Sequence[str]) -> list[pa.Array]:
    """Return some columns in a form in which equal values are equal, and no others."""
    return [_plain(_decoded(rows.column(name))) for name in by]


def grouped(columns: Sequence[pa.Array]) -> tuple[Numbers, Numbers]:
    """Return the group of each row, by plain columns, and the first row of each group."""
    of = reduce(pairs, map(number, columns))
    return of, firsts(of)


def alike(rows: pa.Table) -> Numbers:
    """Number distinct rows, by all their columns, in the order of their first appearance."""
    return reduce(pairs, (number(_plain(_decoded(column))) for column in rows.columns))


def number(values: pa.Array) -> Numbers:
    """Number distinct values, in the order of their first appearance."""
    indices = values.dictionary_encode(null_encoding="encode").indices
    numbers: Numbers = indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return numbers


def pairs(left: Numbers, right: Numbers) -> Numbers:
    """Number distinct pairs of numbers that are numbered themselves, in the order of first appearance."""
    if right.max(initial=0) == 0:
        return left
    # Both are below the count of rows, so this does not overflow.
    return number(pa.array(left * (right.max(initial=0) + 1) + right))


def firsts(numbers: Numbers) -> Numbers:
    """Return where each number is first, of numbers in the order of their first appearance."""
    if not len(numbers) or numbers.max() == len(numbers) - 1:
        return np.arange(len(numbers))
    greatest = np.maximum.accumulate(numbers)
    return np.flatnonzero(np.append(True, greatest[1:] != greatest[:-1]))


def with_nulls(keys: pa.Table) -> Flags:
    """Tell which keys have a null in any column: as in SQL they are equal to none."""
    nulls = [column.is_null().to_numpy() for column in keys.columns]
    flags: Flags = np.any(nulls, axis=0)
    return flags


def integer_type(kind: pa.DataType) -> pa.DataType:
    """Return the integer type that holds the values of a date or time type as they are."""
    return pa.int32() if kind.bit_width == 32 else pa.int64()


def text(column: pa.Array) -> pa.Array:
    """Return nested values as text, equal for equal values and for no others."""
    return pa.array([None if value is None else repr(value) for value in column.to_pylist()], pa.string())


def _decoded(column: pa.ChunkedArray) -> pa.Array:
    array = one_array(column)
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


def _keys(columns: list[pa.Array]) -> Keys:
    parts = [values(column) for column in columns]
    keys = parts[0] if len(parts) == 1 else zip(*parts, strict=True)
    return np.fromiter(keys, np.object_, len(columns[0]))


def _plain(column: pa.Array) -> pa.Array:
    """Return a column of the same distinct values whose Python form is cheap and can be hashed."""
    kind = column.type
    if pa.types.is_floating(kind):
        return _bits(column)
    if pa.types.is_nested(kind):
        return text(column)
    if pa.types.is_temporal(kind):
        return column.cast(integer_type(kind))
    return column


def _bits(column: pa.Array) -> pa.Array:
    """Return floats as their bits, where NaN and zero have one form each."""
    missing = column.is_null().to_numpy(zero_copy_only=False)
    floats = column.fill_null(0).to_numpy(zero_copy_only=False).astype(np.float64) + 0.0
    floats[np.isnan(floats)] = np.nan
    return pa.array(floats.view(np.int64), mask=missing)
