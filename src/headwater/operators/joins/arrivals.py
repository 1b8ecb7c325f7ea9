"""New rows of two inputs: those that are too late, and the others side by side with keys and times.

Invariant: a null in a key makes it equal to none, as in SQL; every row that is not late has a time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.operators.event_time import NEVER, Times
from headwater.operators.groups import Flags, with_nulls
from headwater.operators.memory.key_hash import NO_KEY, KeyHashes, hashed_groups
from headwater.operators.pairing import LEFT, RIGHT, SIDE, Pairing


class Arrived(NamedTuple):
    """Rows of one input, their times, and their keys; NO_KEY for one with a null."""

    rows: pa.Table
    at: Times
    keys: KeyHashes

    @property
    def keyed(self) -> Flags:
        """Tell which rows have a key that may be equal to another."""
        flags: Flags = self.keys.low != NO_KEY
        return flags

    def only(self, chosen: Flags) -> Arrived:
        """Return some of the rows."""
        if chosen.all():
            return self
        return Arrived(self.rows.filter(pa.array(chosen)), self.at[chosen], self.keys.take(chosen))


@dataclass(frozen=True)
class Arrivals:
    """What came in a step."""

    left: Arrived
    right: Arrived
    late: pa.Table | None


def times_of(rows: pa.Table, left: str, right: str) -> Times:
    """Return the times of rows on their way, each from the column of its side; NEVER where it has none."""
    mine, other = (_field(rows, side, name) for side, name in ((LEFT, left), (RIGHT, right)))
    return np.where(is_left(rows), mine, other)


def is_left(rows: pa.Table) -> Flags:
    """Tell which of the rows on their way are of the left."""
    flags: Flags = pc.equal(rows[SIDE], 0).to_numpy()
    return flags


def arrivals(rows: pa.Table, at: Times, late: Flags, pairing: Pairing) -> Arrivals:
    """Part rows on their way into left ones, right ones and late ones."""
    judged = rows.filter(pa.array(late)) if late.any() else None
    if judged is not None:
        rows, at = rows.filter(pa.array(~late)), at[~late]
    mine, keys = is_left(rows), _keys(rows.select(pairing.key))
    left = Arrived(pairing.left(rows), at[mine], keys.take(mine))
    right = Arrived(pairing.right(rows), at[~mine], keys.take(~mine))
    return Arrivals(left, right, judged)


def _keys(keys: pa.Table) -> KeyHashes:
    groups = hashed_groups(keys, keys.column_names)
    if not any(column.null_count for column in keys.columns):
        return groups.keys.take(groups.of)
    null = with_nulls(keys.take(pa.array(groups.first)))
    low = np.where(null, NO_KEY, groups.keys.low)
    return KeyHashes(groups.keys.high[groups.of], low[groups.of])


def _field(rows: pa.Table, side: str, name: str) -> Times:
    column = pc.struct_field(rows[side], name)
    told: Times = column.cast(pa.int64()).fill_null(NEVER).to_numpy()
    return told
