"""What was found in a container: where it lies, until it is asked for.

Invariant: rows and numbers come in the order in which they were asked for, whichever parts they are of.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from headwater.operators.columns import null_rows
from headwater.operators.groups import Flags, Numbers
from headwater.operators.memory.entries import Entries


@dataclass(frozen=True)
class Found:
    """Which of some parts has each of what was asked for, -1 where none has it, and where in the part."""

    parts: list[Entries]
    owner: Numbers
    position: Numbers
    schema: pa.Schema

    @cached_property
    def known(self) -> Flags:
        """Tell what is there."""
        flags: Flags = self.owner >= 0
        return flags

    def rows(self, *columns: str) -> pa.Table:
        """Return the rows, all columns or some; nulls for what is not there."""
        names = list(columns or self.schema.names)
        if not self.parts:
            return null_rows(pa.schema([self.schema.field(name) for name in names]), len(self.owner))
        tables = [part.rows.select(names) for part in self.parts]
        rows, position = tables[0], self.position
        if len(tables) > 1:
            turns = [self._turn(number) for number in range(len(tables))]
            pieces = [table.take(pa.array(position[turn])) for table, turn in zip(tables, turns, strict=True)]
            rows, position = pa.concat_tables(pieces).combine_chunks(), np.zeros(len(self.owner), np.int64)
            position[np.concatenate(turns)] = np.arange(len(rows))
        return rows.take(pa.array(position, mask=None if self.known.all() else ~self.known))

    def numbers(self, column: str, missing: int) -> Numbers:
        """Return a column of whole numbers that has no nulls, with one number for what is not there."""
        found = np.full(len(self.owner), missing)
        for number, part in enumerate(self.parts):
            turn = self._turn(number)
            found[turn] = part.rows.column(column).to_numpy()[self.position[turn]]
        return found

    def _turn(self, number: int) -> Numbers:
        return np.flatnonzero(self.owner == number)
