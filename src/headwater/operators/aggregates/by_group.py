"""Values of many groups at once: reduced, chosen, or listed, without a loop over the groups.

Invariant: a result has a place for each group from 0 to ``count`` - 1, null or empty where a group
has no value.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headwater.operators.columns import one_array
from headwater.operators.groups import Numbers
from headwater.operators.order import stable

Mask = npt.NDArray[np.bool_]


class PresentValues(NamedTuple):
    """The values of a column that are there, the group of each, and their places among the rows."""

    values: pa.Array
    groups: Numbers
    indices: Numbers | None
    """None where every row has a value."""


def present(rows: pa.Table, name: str, groups: Numbers) -> PresentValues:
    """Leave out the rows in which a column is null."""
    values = one_array(rows.column(name))
    if not values.null_count:
        return PresentValues(values, groups, None)
    indices = np.flatnonzero(valid(values))
    return PresentValues(values.take(pa.array(indices)), groups[indices], indices)


def valid(values: pa.Array) -> Mask:
    """Tell which values are not null."""
    flags: Mask = values.is_valid().to_numpy(zero_copy_only=False)
    return flags


def counted(groups: Numbers, count: int) -> Numbers:
    """Return how many rows each group has."""
    return np.bincount(groups, minlength=count)


def added(values: Numbers, groups: Numbers, count: int) -> Numbers:
    """Return the sum of each group; the caller knows that it does not overflow."""
    sums = np.zeros(count, np.int64)
    np.add.at(sums, groups, values)
    return sums


def reduced(values: pa.Array, groups: Numbers, count: int, how: str) -> pa.Array:
    """Return what an aggregate function of Arrow makes of each group; null for a group without values."""
    rows = pa.table({"group": groups, "value": values})
    made = rows.group_by("group", use_threads=False).aggregate([("value", how)])
    return chosen(one_array(made.column(f"value_{how}")), placed(made.column("group").to_numpy(), count))


def placed(groups: Numbers, count: int) -> Numbers:
    """Return the last place at which each group stands, or -1."""
    indices = np.full(count, -1)
    indices[groups] = np.arange(len(groups))
    return indices


def chosen(values: pa.Array, indices: Numbers) -> pa.Array:
    """Return the values at some places; null for the place -1."""
    return values.take(pa.array(indices, mask=indices < 0))


def listed(values: pa.Array, groups: Numbers, count: int, missing: Mask | None = None) -> pa.ListArray:
    """Return a list of values for each group, of values that stand together group by group, in order.

    What is missing is null, and not an empty list.
    """
    ends = np.cumsum(counted(groups, count))
    mask = None if missing is None else pa.array(missing)
    return pa.ListArray.from_arrays(pa.array(np.append(0, ends), pa.int32()), values, mask=mask)


def lengths(lists: pa.ListArray) -> Numbers:
    """Return how many values each list has."""
    counts: Numbers = pc.list_value_length(lists).fill_null(0).to_numpy().astype(np.int64)
    return counts


def lists_of(lists: pa.ListArray) -> Numbers:
    """Return the number of the list of each value, as ``flatten`` tells them."""
    return np.repeat(np.arange(len(lists)), lengths(lists))


def ranks_within(groups: Numbers) -> Numbers:
    """Return the place of each row in its group, from 0, of rows that stand together group by group."""
    starts = np.flatnonzero(np.diff(groups, prepend=-1))
    runs = np.diff(np.append(starts, len(groups)))
    return np.arange(len(groups)) - np.repeat(starts, runs)


def together(groups: Numbers, count: int) -> tuple[Numbers, list[tuple[int, int]]]:
    """Return places that put rows group by group, and where each group begins and ends then."""
    ends: list[Any] = np.cumsum(counted(groups, count)).tolist()
    return stable(groups), list(zip([0, *ends], ends, strict=False))
