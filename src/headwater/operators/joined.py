"""The rows that come out of a join: the left columns, then the right ones without the join's keys.

Invariant: every column has a name of its own; one that is taken gets the prefix.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from headwater.errors import UsageError
from headwater.operators.pairing import Pairing


@dataclass(frozen=True)
class Joined:
    """How rows of two inputs are put side by side."""

    what: str
    pairing: Pairing
    left: pa.Schema
    right: pa.Schema
    prefix: str | None = None
    optional: bool = True
    """Whether a side may be missing, so that its keys are taken from the other one."""

    def __post_init__(self) -> None:
        taken = set(self.left.names)
        for name, column in zip(self.added, self._names(), strict=True):
            if column in taken:
                raise UsageError(
                    f'{self.what} has two columns "{column}"',
                    detail=f'the left rows and the right ones have a column "{name}"',
                    hint='give the right one another name with prefix="…", or leave it out before',
                )
            taken.add(column)

    @cached_property
    def added(self) -> list[str]:
        """The right columns that come out, by the names that they have there."""
        keys = {name for _, name in self.pairing.on}
        return [name for name in self.right.names if name not in keys]

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns out, all of them nullable."""
        renamed = zip(self.added, self._names(), strict=True)
        right = [self.right.field(name).with_name(column) for name, column in renamed]
        return pa.schema([field.with_nullable(True) for field in (*self.left, *right)])

    def rows(self, left: pa.Table, right: pa.Table) -> pa.Table:
        """Put left and right rows side by side; where a left one is missing, the right one has the keys."""
        keys = dict(self.pairing.on)
        mine = [
            pc.coalesce(left[name], right[keys[name]].cast(left[name].type))
            if name in keys and self.optional
            else left[name]
            for name in self.left.names
        ]
        columns = [*mine, *(right[name] for name in self.added)]
        return pa.Table.from_arrays(columns, schema=self.schema)

    def _names(self) -> list[str]:
        taken, prefix = set(self.left.names), self.prefix or ""
        return [f"{prefix}{name}" if name in taken else name for name in self.added]
