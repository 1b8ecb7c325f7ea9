"""Rows joined at once with a table as it is known now.

Invariant: a left row comes out in the step in which it comes, with the row of its key that came last
among the table's rows of this step and of all before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from headwater.operators.groups import Flags, with_nulls
from headwater.operators.joined import Joined
from headwater.operators.joins.deletions import deletions
from headwater.operators.memory.key_hash import HashedGroups, hashed_groups
from headwater.operators.memory.operator_memory import OperatorMemory
from headwater.operators.memory.row_by_key import RowByKey
from headwater.operators.operator import Operator, Step
from headwater.operators.pairing import Pairing, sides
from headwater.record import DELETED


@dataclass(frozen=True)
class LookupTable:
    """The table as it is now, and how its rows come out."""

    present: RowByKey
    joined: Joined
    types: list[pa.DataType]
    """Of the keys."""


@dataclass(frozen=True)
class Lookup(Operator[LookupTable]):
    """Join each left row with the row of its key as it is known when it comes.

    A step takes the table's rows first, in the order of arrival, and then the left rows, which come out
    in theirs. Nothing is late. The state is the last row of each key that was not deleted, and stays; a
    restart finds it as it was. What comes out depends on the arrival, so a batch may give other rows.

    >>> from headwater.operators.event_time import NEVER
    >>> from headwater.operators.pairing import pairing
    >>> orders = pa.table({"customer": ["ada", "bob"]})
    >>> customers = pa.table({"id": ["ada"], "tier": ["gold"]})
    >>> on = pairing("lookup", {"customer": "id"})
    >>> rows = on.sent(orders, customers, on.schema("lookup", orders.schema, customers.schema))
    >>> lookup = Lookup(on)
    >>> lookup.step(lookup.initial_state(rows.schema), rows, NEVER).out["tier"].to_pylist()
    ['gold', None]
    """

    version = 2
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
        return LookupTable(RowByKey(sides(schema)[1]), self._joined(schema), types)

    def memory(self, state: LookupTable) -> OperatorMemory:
        """Return the table."""
        return OperatorMemory({"table": state.present.runs})

    def step(self, state: LookupTable, rows: pa.Table, watermark: int) -> Step:
        """Take the table's rows, and look up the left ones."""
        self._take(state, self.pairing.right(rows))
        return Step(self._out(state, self.pairing.left(rows)))

    def next_timer(self, state: LookupTable) -> int | None:
        """Return None: time alone changes nothing."""
        return None

    def _joined(self, schema: pa.Schema) -> Joined:
        left, right = sides(schema)
        shown = pa.schema([each for each in right if each.name != DELETED])
        return Joined("lookup", self.pairing, left, shown, self.prefix, optional=False)

    def _take(self, state: LookupTable, rows: pa.Table) -> None:
        """Take changes of the table: the last of each key."""
        groups, known = _grouped(rows, [name for _, name in self.pairing.on], state.types)
        last = np.empty(len(groups.first), np.int64)
        last[groups.of] = np.arange(len(rows))  # of several, the last is assigned
        keys, rows = groups.keys.take(known), rows.take(pa.array(last[known]))
        gone = deletions(rows)
        state.present.remove(keys.take(gone))
        state.present.put(keys.take(~gone), rows.filter(pa.array(~gone)))

    def _out(self, state: LookupTable, left: pa.Table) -> pa.Table:
        groups, known = _grouped(left, [name for name, _ in self.pairing.on], state.types)
        found = state.present.find(groups.keys, *state.joined.added)
        there = (found.known & known)[groups.of]
        right = found.rows.take(pa.array(groups.of, mask=~there))
        if self.how == "inner":
            left, right = left.filter(pa.array(there)), right.filter(pa.array(there))
        return state.joined.rows(left, right)


def _grouped(
    rows: pa.Table, names: Sequence[str], types: Sequence[pa.DataType]
) -> tuple[HashedGroups, Flags]:
    """Group rows of one side by their keys, of these types on their way; tell which keys have no null."""
    columns = [rows[name].cast(kind) for name, kind in zip(names, types, strict=True)]
    keys = pa.table(columns, [str(place) for place in range(len(columns))])
    groups = hashed_groups(keys, keys.column_names)
    return groups, ~with_nulls(keys.take(pa.array(groups.first)))
