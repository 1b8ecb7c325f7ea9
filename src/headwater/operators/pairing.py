"""Rows of two inputs on one way: to the same bucket where their keys are equal, and then apart again.

A row that travels says which side it is of, has the columns of the key under names of their own, and
is itself one value, in the column of its side. So an operator over two inputs is one over one.

Invariant: ``left`` and ``right`` give back the rows that went in, in their order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headwater.errors import UsageError
from headwater.names import listed
from headwater.operators.columns import check_columns, one_array, plain_values, type_text

SIDE, LEFT, RIGHT = "_side", "_left", "_right"
On = str | Sequence[str] | Mapping[str, str]


@dataclass(frozen=True)
class Pairing:
    """Which columns of two inputs have to be equal."""

    on: tuple[tuple[str, str], ...]
    """The names of a column of the left rows and of the right ones."""

    @property
    def key(self) -> tuple[str, ...]:
        """The columns by which rows meet on their way."""
        return tuple(f"_key{number}" for number in range(len(self.on)))

    def schema(self, what: str, left: pa.Schema, right: pa.Schema) -> pa.Schema:
        """Return the schema of rows on their way, or refuse columns that are never equal."""
        check_columns(what, [name for name, _ in self.on], left)
        check_columns(what, [name for _, name in self.on], right)
        keys = [
            pa.field(key, _common(what, left.field(mine), right.field(other)))
            for key, (mine, other) in zip(self.key, self.on, strict=True)
        ]
        sides = [pa.field(LEFT, pa.struct(list(left))), pa.field(RIGHT, pa.struct(list(right)))]
        return pa.schema([pa.field(SIDE, pa.int8()), *keys, *sides])

    def sent(self, left: pa.Table, right: pa.Table, schema: pa.Schema) -> pa.Table:
        """Return the rows of both inputs on their way: those of the left first."""
        names = list(zip(*self.on, strict=True)) or [(), ()]
        sides = (_sent(left, names[0], LEFT, schema), _sent(right, names[1], RIGHT, schema))
        return pa.concat_tables(sides)

    def left(self, rows: pa.Table) -> pa.Table:
        """Return the left rows of those on their way."""
        return _received(rows, LEFT)

    def right(self, rows: pa.Table) -> pa.Table:
        """Return the right rows of those on their way."""
        return _received(rows, RIGHT)


def pairing(what: str, on: On) -> Pairing:
    """Read what a user writes: a column, several, or the right name of each left one."""
    if isinstance(on, str):
        on = listed(on)
    pairs = tuple(on.items()) if isinstance(on, Mapping) else tuple((name, name) for name in on)
    if not pairs:
        raise UsageError(f"{what} has no columns to go by", hint="name at least one column")
    return Pairing(pairs)


def sides(schema: pa.Schema) -> tuple[pa.Schema, pa.Schema]:
    """Return the schemas of the left and the right rows, from that of rows on their way."""
    return pa.schema(list(schema.field(LEFT).type)), pa.schema(list(schema.field(RIGHT).type))


def side_of(name: str) -> int:
    """Return the number of a side."""
    return (LEFT, RIGHT).index(name)


def _sent(rows: pa.Table, names: Sequence[str], side: str, schema: pa.Schema) -> pa.Table:
    keys = [rows[name].cast(schema.field(n + 1).type) for n, name in enumerate(names)]
    struct = schema.field(side).type
    whole = rows.combine_chunks()
    parts = [one_array(whole[field.name].cast(field.type)) for field in struct]
    mine = pa.StructArray.from_arrays(parts, fields=list(struct))
    other = LEFT if side == RIGHT else RIGHT
    both = {side: mine, other: pa.nulls(len(rows), schema.field(other).type)}
    number = pa.repeat(pa.scalar(side_of(side), pa.int8()), len(rows))
    return pa.Table.from_arrays([number, *keys, both[LEFT], both[RIGHT]], schema=schema)


def _received(rows: pa.Table, side: str) -> pa.Table:
    mine = np.flatnonzero(plain_values(rows[SIDE]) == side_of(side))
    column = one_array(rows[side])
    if len(mine) and mine[-1] - mine[0] < len(mine):  # they lie together, as they were sent
        column = column.slice(mine[0], len(mine))
    else:
        column = column.take(pa.array(mine))
    return pa.Table.from_arrays(column.flatten(), schema=pa.schema(list(column.type)))


def _common(what: str, left: pa.Field, right: pa.Field) -> pa.DataType:
    """Return the type in which both columns can be compared."""
    if left.type == right.type:
        return left.type
    kinds = (left.type, right.type)
    for test, kind in (
        (pa.types.is_integer, pa.int64()),
        (lambda t: pa.types.is_string(t) or pa.types.is_large_string(t), pa.string()),
    ):
        if all(map(test, kinds)):
            return kind
    raise UsageError(
        f'{what} cannot compare "{left.name}" with "{right.name}"',
        detail=f"{type_text(left)} and {type_text(right)}",
        hint="cast one of them before",
    )
