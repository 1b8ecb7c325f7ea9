"""The changes of a table: of several of one key the last one counts, and one that changes nothing does not.

A change has all columns of its row, or only those of the primary key and ``_deleted``.

Invariant: changes of a key are taken in the order of their arrival, and what comes of them does not
depend on how they are split into steps, once the last one is taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.errors import UsageError
from headwater.operators.columns import check_columns, plain_values
from headwater.operators.groups import Flags, Numbers, text
from headwater.operators.memory.key_hash import KeyHashes, hashed_groups
from headwater.operators.memory.row_by_key import FoundRows
from headwater.record import DELETED


class LastChange(NamedTuple):
    """The last change of each key: its index, whether it deletes, and the key."""

    indices: Numbers
    deleted: Flags
    keys: KeyHashes

    def only(self, chosen: Flags) -> LastChange:
        """Return the changes that are chosen."""
        if chosen.all():
            return self
        return LastChange(self.indices[chosen], self.deleted[chosen], self.keys.take(chosen))


def last(changes: pa.Table, primary: Sequence[str]) -> LastChange:
    """Return the last change of each key, in the order of arrival."""
    groups = hashed_groups(changes, primary)
    indices = np.empty(len(groups.first), np.int64)
    indices[groups.of] = np.arange(len(changes))  # of several, the last is assigned
    turn = np.argsort(indices)
    deleted = plain_values(changes[DELETED], False)[indices[turn]]
    return LastChange(indices[turn], deleted, groups.keys.take(turn))


def effective(changes: LastChange, rows: pa.Table, old: FoundRows) -> Flags:
    """Tell which changes are ones: not the deletion of what is not there, nor a row as it is.

    ``rows`` are those of all changes, and ``old`` has what each key had, of columns that are among theirs.
    """
    changed = old.known | ~changes.deleted
    both = np.flatnonzero(old.known & ~changes.deleted)
    new = rows.select(old.rows.column_names).take(pa.array(changes.indices[both]))
    held = old.rows if len(both) == len(changed) else old.rows.take(pa.array(both))
    changed[both] = ~identical(new, held)
    return changed


def check_table(what: str, side: str, primary: Sequence[str], schema: pa.Schema) -> None:
    """Refuse rows that are not the changes of a table."""
    if not primary or DELETED not in schema.names:
        raise UsageError(
            f"{what} goes over tables, and the {side} rows are none",
            detail="the changes of a table have its primary key, and a column _deleted",
            hint="declare it with pipeline.table(…, key=…), and keep these columns",
        )
    check_columns(what, primary, schema)


def identical(rows: pa.Table, others: pa.Table) -> Flags:
    """Tell of each row whether it is identical with the other one at its place: zero has a sign, NaN is NaN.

    This is stricter than equality (``headwater.engine.proof.equality``), for which zero has no sign. What is
    identical need not be emitted again. Of two zeros the newer one must be: code that reads it may make
    different things of them, as of their text, and the result would depend on which one came first.
    """
    if not len(rows):
        return np.zeros(0, np.bool_)
    columns = zip(rows.columns, others.columns, strict=True)
    return reduce(np.logical_and, (_identical(a.combine_chunks(), b.combine_chunks()) for a, b in columns))


def _identical(left: pa.Array, right: pa.Array) -> Flags:
    if pa.types.is_list(left.type):
        return _identical_lists(left, right)
    left, right = _plain(left), _plain(right)
    equal = pc.equal(left, right).fill_null(False)
    both: Flags = pc.or_(equal, pc.and_(left.is_null(), right.is_null())).to_numpy(zero_copy_only=False)
    return both


def _identical_lists(left: pa.Array, right: pa.Array) -> Flags:
    """Compare lists of one length value by value, and others not at all."""
    sizes, others = (pc.list_value_length(side).fill_null(-1).to_numpy() for side in (left, right))
    equal: Flags = sizes == others
    some = np.flatnonzero(equal & (sizes > 0))
    mine, other = (side.take(pa.array(some)).flatten() for side in (left, right))
    equal[np.repeat(some, sizes[some])[~_identical(mine, other)]] = False
    return equal


def _plain(column: pa.Array) -> pa.Array:
    """Return a column in which only equal values are equal."""
    if pa.types.is_nested(column.type):
        return text(column)
    if not pa.types.is_floating(column.type):
        return column
    floats = column.fill_null(0).to_numpy(zero_copy_only=False).astype(np.float64)
    floats[np.isnan(floats)] = np.nan
    return pa.array(floats.view(np.int64), mask=column.is_null().to_numpy(zero_copy_only=False))
