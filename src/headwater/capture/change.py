"""Changes of a database's tables as every source delivers them: many at a time, as Arrow.

Invariant: the changes of a delivery are in the order of their commits, and within a transaction in the order
in which they were made; two deliveries of the same stretch of a source's history hold the same changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

INSERT, UPDATE, DELETE, TRUNCATE, READ = range(5)
OPERATIONS: Final = ("insert", "update", "delete", "truncate", "read")
"""What happened to a row, by its number; ``read`` is a row that a snapshot has found."""

Codes = npt.NDArray[np.int8]
Numbers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class SourceColumn:
    """A column of a table, as its database declares it."""

    name: str
    type: pa.DataType
    """The Arrow type that holds every value of it, or nearly: what the declared type may hold too."""
    sql_type: str
    """The type in the database's own words."""
    nullable: bool = True
    generated: bool = False


@dataclass(frozen=True)
class SourceTable:
    """A table that can be captured."""

    name: str
    """With its schema where that is not the default one: ``customers``, ``crm.customers``."""
    columns: tuple[SourceColumn, ...]
    key: tuple[str, ...]
    """What identifies its rows in changes: the primary key, or the columns of the replica identity."""

    @property
    def schema(self) -> pa.Schema:
        """The columns as Arrow."""
        return pa.schema([pa.field(each.name, each.type, each.nullable) for each in self.columns])


@dataclass(frozen=True)
class ChangePosition:
    """Where a change stands in the source's history: the end of its transaction, and its number there."""

    position: str
    index: int


@dataclass(frozen=True)
class Transactions:
    """The transactions of a delivery, in the order of their commits."""

    id: tuple[str, ...]
    position: tuple[str, ...]
    """Where each ends in the source's log: a stream that begins there delivers the next one first. Of one
    that is not whole yet, a position behind everything before it."""
    committed: Numbers
    """When, in microseconds since 1970, by the database's clock."""

    def position_of(self, number: int, index: int) -> ChangePosition:
        """Return where a change of a transaction stands."""
        return ChangePosition(self.position[number], index)


@dataclass(frozen=True)
class TableChanges:
    """Changes of rows of one table, which may be of several transactions."""

    table: SourceTable
    """The table as it was then."""
    operation: Codes
    """``INSERT``, ``UPDATE``, ``DELETE`` or ``READ``. An update of the key is a deletion and an insertion."""
    rows: pa.RecordBatch
    """The rows after the change; of a deletion at least the key, and null what is not known."""
    transactions: Transactions
    transaction: Numbers
    """The number of the transaction in ``transactions``, of each change; it never falls."""
    index: Numbers
    """The number of each change within its transaction, over all tables, from 0."""
    before: pa.RecordBatch | None = None
    """The rows before the change where the database tells: null where it does not."""
    unfit: Mapping[int, str] = field(default_factory=dict)
    """Why rows cannot be held by their table's columns, by their numbers: the column and the value as text,
    such as an infinite date. The value is null in ``rows``."""
    unchanged: dict[str, Flags] = field(default_factory=dict)
    """Of columns whose value was not sent with every row, because the change has left it as it was: which
    rows. It is null in ``rows``. Behind a deletion with the same index, of the old key, it is that of the old
    key."""
    filled: bool = False
    """Whether values that were not sent were looked up, in what the topic had before the first of them."""

    def __len__(self) -> int:
        return len(self.operation)

    @property
    def end(self) -> tuple[int, int]:
        """The number of the last transaction, and that of its last change there."""
        return int(self.transaction[-1]), int(self.index[-1])

    def part(self, start: int, end: int) -> TableChanges:
        """Return the changes from a row to another."""
        return replace(
            self,
            operation=self.operation[start:end],
            rows=self.rows.slice(start, end - start),
            transaction=self.transaction[start:end],
            index=self.index[start:end],
            before=None if self.before is None else self.before.slice(start, end - start),
            unfit={row - start: why for row, why in self.unfit.items() if start <= row < end},
            unchanged={name: rows[start:end] for name, rows in self.unchanged.items()},
        )

    def chosen(self, rows: Numbers) -> TableChanges:
        """Return some of the changes, by their numbers, which rise, without what was there before."""
        if len(rows) == len(self):
            return self
        numbers = dict(zip(rows.tolist(), range(len(rows)), strict=True)) if self.unfit else {}
        return replace(
            self,
            operation=self.operation[rows],
            rows=self.rows.take(pa.array(rows)),
            transaction=self.transaction[rows],
            index=self.index[rows],
            before=None,
            unfit={numbers[row]: why for row, why in self.unfit.items() if row in numbers},
            unchanged={name: flags[rows] for name, flags in self.unchanged.items()},
        )


@dataclass(frozen=True)
class Truncation:
    """All rows of a table were removed at once.

    What was changed before stands before it in a delivery, and what was changed after it behind.
    """

    table: SourceTable
    transactions: Transactions
    transaction: int
    index: int
    """The same for all tables that one statement has emptied."""

    def __len__(self) -> int:
        return 1

    @property
    def end(self) -> tuple[int, int]:
        """The number of its transaction, and its own there."""
        return self.transaction, self.index


@dataclass(frozen=True)
class Delivery:
    """What comes next in a source's history."""

    changes: tuple[TableChanges | Truncation, ...] = ()
    """All of them name the same ``transactions``."""
    position: str | None = None
    """Where the last whole transaction of it ends, or the last moment of which the source knows that no
    transaction has ended before; None where there is no such moment since the last delivery."""

    def statements(self) -> Iterator[TableChanges | list[Truncation]]:
        """Yield changes in their order, and together the truncations of one statement."""
        emptied: list[Truncation] = []
        for each in self.changes:
            if emptied and not (isinstance(each, Truncation) and each.end == emptied[0].end):
                yield emptied
                emptied = []
            if isinstance(each, Truncation):
                emptied.append(each)
            else:
                yield each
        if emptied:
            yield emptied

    @property
    def last(self) -> ChangePosition | None:
        """The last of its changes."""
        ends = [each.end for each in self.changes if isinstance(each, Truncation) or len(each)]
        return self.changes[0].transactions.position_of(*max(ends)) if ends else None


@dataclass(frozen=True)
class SnapshotChunk:
    """Rows of a table in the order of its key, as one moment has them."""

    rows: pa.RecordBatch
    end: str
    """A position by which all that this moment has seen is delivered; later changes may be in it too."""
    last: bool
    """Whether there is nothing behind it."""
    after: tuple[object, ...] | None = field(default=None)
    """The key of its last row, behind which the next chunk begins; None if it has no rows."""
    unfit: Mapping[int, str] = field(default_factory=dict)
    """Why rows cannot be held by their table's columns, as of ``TableChanges``."""
