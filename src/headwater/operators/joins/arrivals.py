"""New rows of two inputs: those that are too late, and the others side by side with keys and times.

Invariant: a null in a key makes it equal to none, as in SQL; every row that is not late has a time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.operators.event_time import NEVER, Times
from headwater.operators.groups import Flags, Keys, Numbers, group, with_nulls
from headwater.operators.memory.numbered_rows import NOWHERE
from headwater.operators.memory.rows_by_key_and_time import KeySlots
from headwater.operators.pairing import LEFT, RIGHT, SIDE, Pairing


class Arrived(NamedTuple):
    """Rows of one input, their times, and the numbers of their keys; NOWHERE for a key with a null."""

    rows: pa.Table
    at: Times
    slots: Numbers

    def only(self, chosen: Flags) -> Arrived:
        """Return some of the rows."""
        if chosen.all():
            return self
        return Arrived(self.rows.filter(pa.array(chosen)), self.at[chosen], self.slots[chosen])


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


def arrivals(rows: pa.Table, at: Times, late: Flags, pairing: Pairing, slots: KeySlots | None) -> Arrivals:
    """Part rows on their way into left ones, right ones and late ones; without slots their keys have none."""
    judged = rows.filter(pa.array(late)) if late.any() else None
    if judged is not None:
        rows, at = rows.filter(pa.array(~late)), at[~late]
    mine = is_left(rows)
    numbers = np.full(len(rows), NOWHERE) if slots is None else _numbered(rows.select(pairing.key), slots.of)
    left = Arrived(pairing.left(rows), at[mine], numbers[mine])
    right = Arrived(pairing.right(rows), at[~mine], numbers[~mine])
    return Arrivals(left, right, judged)


def slots_of(
    rows: pa.Table, names: Sequence[str], types: Sequence[pa.DataType], numbers: Callable[[Keys], Numbers]
) -> Numbers:
    """Return the numbers of the keys of rows of one side, which have these types on their way."""
    columns = [rows[name].cast(kind) for name, kind in zip(names, types, strict=True)]
    return _numbered(pa.table(columns, [str(place) for place in range(len(columns))]), numbers)


def _numbered(keys: pa.Table, numbers: Callable[[Keys], Numbers]) -> Numbers:
    groups = group(keys, keys.column_names)
    known = ~with_nulls(keys.take(pa.array(groups.first)))
    slots = np.full(len(known), NOWHERE)
    slots[known] = numbers(groups.keys[known])
    return slots[groups.of]


def _field(rows: pa.Table, side: str, name: str) -> Times:
    column = pc.struct_field(rows[side], name)
    told: Times = column.cast(pa.int64()).fill_null(NEVER).to_numpy()
    return told
