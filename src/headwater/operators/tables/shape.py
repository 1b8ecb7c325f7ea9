"""What comes out of a join of two tables: which columns, and what tells results apart.

Invariant: at any time no two results of a join that has passed ``check`` have one identity, and none of
its columns is null, as those of primary keys are not.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa

from headwater.errors import UsageError
from headwater.operators.joined import Joined
from headwater.operators.pairing import Pairing
from headwater.operators.spec import Side
from headwater.operators.table_changes import check_table
from headwater.record import DELETED

WHAT = "joins.tables"
HOW = ("inner", "left", "right", "full")


@dataclass(frozen=True)
class TableShape:
    """Two tables, and how they are joined."""

    pairing: Pairing
    left: Side
    right: Side
    how: str
    prefix: str | None

    @property
    def spread(self) -> tuple[str, ...]:
        """The keys that every change tells, also a deletion, and that a row never changes."""
        named = zip(self.pairing.key, self.pairing.on, strict=True)
        known = (key for key, (a, b) in named if a in self.left.table and b in self.right.table)
        return tuple(known)

    @property
    def identity(self) -> tuple[str, ...]:
        """The primary keys of the sides that are never missing, as they come out, each column once."""
        if self.how in ("left", "full"):
            return self.left.table
        if self.how == "right":
            return tuple(dict.fromkeys(self._out_names(self.right.table)))
        # The right keys of the join follow from the left row, and so tell nothing more.
        keys = {name for _, name in self.pairing.on}
        more = self._out_names(name for name in self.right.table if name not in keys)
        return (*self.left.table, *more)

    @property
    def joined(self) -> Joined:
        """How rows are put side by side, without ``_deleted``."""
        left, right = (_without(side.schema) for side in (self.left, self.right))
        return Joined(WHAT, self.pairing, left, right, self.prefix, self.how in ("right", "full"))

    def check(self) -> None:
        """Refuse what is no table, and results of which a part may be missing that tells them apart."""
        check_table(WHAT, "left", self.left.table, self.left.schema)
        check_table(WHAT, "right", self.right.table, self.right.schema)
        mine, other = (set(names) for names in zip(*self.pairing.on, strict=True))
        if self.how in ("left", "full") and not set(self.right.table) <= other:
            raise _many(self.how, "left", "right", self.right.table)
        if self.how in ("right", "full") and not set(self.left.table) <= mine:
            raise _many(self.how, "right", "left", self.left.table)
        if self.how == "full":
            self._check_full(mine, other)
        if self.how in ("right", "full"):
            self._check_types()

    def _check_full(self, left_on: set[str], right_on: set[str]) -> None:
        if left_on != set(self.left.table) or right_on != set(self.right.table):
            raise UsageError(
                f"{WHAT} with how=full joins by the primary keys of both tables and nothing else",
                detail=f"those are {', '.join(self.left.table)} and {', '.join(self.right.table)}",
                hint="a row without a partner is told apart by its key, which must not be null",
            )

    def _check_types(self) -> None:
        """Refuse keys of two types where the right one stands in for the left one."""
        for mine, other in self.pairing.on:
            if self.left.schema.field(mine).type != self.right.schema.field(other).type:
                raise UsageError(
                    f'{WHAT} with how={self.how} needs "{mine}" and "{other}" to be of one type',
                    detail="where the left row is missing, the right one has the key",
                    hint="cast one of them before",
                )

    def _out_names(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return the names that columns of the right come out under."""
        joined = self.joined
        added = dict(zip(joined.added, joined.schema.names[len(joined.left) :], strict=True))
        met = {other: mine for mine, other in self.pairing.on}
        return tuple(met[name] if name in met else added[name] for name in names)


def _without(schema: pa.Schema) -> pa.Schema:
    return pa.schema([field for field in schema if field.name != DELETED])


def _many(how: str, side: str, other: str, key: tuple[str, ...]) -> UsageError:
    return UsageError(
        f"{WHAT} with how={how} finds at most one {other} row for a {side} one, and here may be several",
        detail=f"the join does not go by the whole primary key of the {other} table, {', '.join(key)}; "
        "a result without one would have no key",
        hint='join by that key, or use how="inner"',
    )
