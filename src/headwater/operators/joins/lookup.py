"""Rows joined at once with a table as it is known now.

Invariant: a left row comes out in the step in which it comes, with the row of its key that came last
among the table's rows of this step and of all before it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from headwater.operators.groups import Numbers
from headwater.operators.joined import Joined
from headwater.operators.joins.arrivals import slots_of
from headwater.operators.joins.deletions import deletions
from headwater.operators.memory.current_table import CurrentTable
from headwater.operators.memory.numbered_rows import NOWHERE
from headwater.operators.operator import Operator, Step
from headwater.operators.pairing import Pairing, sides
from headwater.record import DELETED


@dataclass(frozen=True)
class LookupTable:
    """The table as it is now, and how its rows come out."""

    present: CurrentTable
    joined: Joined
    types: list[pa.DataType]
    """Of the keys."""


@dataclass(frozen=True)
class Lookup(Operator[LookupTable]):
    """Join each left row with the row of its key as it is known when it comes.

    A step takes the table's rows first, in the order of arrival, and then the left rows, which come out
    in theirs. Nothing is late. The state is the last row of each key that was not deleted, and stays; a
    restart finds it as it was. What comes out depends on the arrival, so a batch may give other rows.

    >>> from headwater.operators.operator import NEVER
    >>> from headwater.operators.pairing import pairing
    >>> orders = pa.table({"customer": ["ada", "bob"]})
    >>> customers = pa.table({"id": ["ada"], "tier": ["gold"]})
    >>> on = pairing("lookup", {"customer": "id"})
    >>> rows = on.sent(orders, customers, on.schema("lookup", orders.schema, customers.schema))
    >>> lookup = Lookup(on)
    >>> lookup.step(lookup.initial_state(rows.schema), rows, NEVER).out["tier"].to_pylist()
    ['gold', None]
    """

    pairing: Pairing
    how: str = "left"
    prefix: str | None = None
    key: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", self.pairing.key)

    @property
    def repeatable(self) -> bool:
        """Not so: what comes out depends on what had come by then."""
        return False

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        """Return the left columns, then the right ones without the keys."""
        return self._joined(schema).schema

    def initial_state(self, schema: pa.Schema) -> LookupTable:
        """Return an empty table."""
        types = [schema.field(name).type for name in self.key]
        return LookupTable(CurrentTable(sides(schema)[1]), self._joined(schema), types)

    def restore_chunk(self, state: LookupTable, chunk: pa.Table) -> None:
        """Take the rows of a chunk."""
        self._take(state, chunk)
        state.present.tidy()

    def step(self, state: LookupTable, rows: pa.Table, watermark: int) -> Step:
        """Take the table's rows, and look up the left ones."""
        changes = self._take(state, self.pairing.right(rows))
        out = self._out(state, self.pairing.left(rows))
        state.present.tidy()
        return Step(out, chunk=changes if len(changes) else None)

    def next_timer(self, state: LookupTable) -> int | None:
        """Return None: time alone changes nothing."""
        return None

    def snapshot(self, state: LookupTable) -> pa.Table:
        """Return the row of each key."""
        return state.present.rows()

    def _joined(self, schema: pa.Schema) -> Joined:
        left, right = sides(schema)
        shown = pa.schema([each for each in right if each.name != DELETED])
        return Joined("lookup", self.pairing, left, shown, self.prefix, optional=False)

    def _take(self, state: LookupTable, rows: pa.Table) -> pa.Table:
        """Take changes of the table; return those that count, the last of each key."""
        names = [name for _, name in self.pairing.on]
        slots = slots_of(rows, names, state.types, state.present.slots.of)
        last = _last(slots)
        rows, slots = rows.take(pa.array(last)), slots[last]
        gone = deletions(rows)
        state.present.remove(slots[gone])
        state.present.put(slots[~gone], rows.filter(pa.array(~gone)))
        return rows

    def _out(self, state: LookupTable, left: pa.Table) -> pa.Table:
        names = [name for name, _ in self.pairing.on]
        numbers = state.present.find(slots_of(left, names, state.types, state.present.slots.find))
        if self.how == "inner":
            there = np.flatnonzero(numbers != NOWHERE)
            left, numbers = left.take(pa.array(there)), numbers[there]
        return state.joined.rows(left, state.present.take(numbers, *state.joined.added))


def _last(slots: Numbers) -> Numbers:
    """Return the place of the last row of each key, in the order of arrival."""
    known = np.flatnonzero(slots != NOWHERE)[::-1]
    return np.sort(known[np.unique(slots[known], return_index=True)[1]])
