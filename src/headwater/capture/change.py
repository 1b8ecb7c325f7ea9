"""Changes of a database's tables as every source delivers them: many at a time, as Arrow.

Invariant: the changes of a delivery are in the order of their commits, and within a transaction in the order
in which they were made; two deliveries of the same stretch of a source's history hold the same changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

INSERT, UPDATE, DELETE, TRUNCATE, READ = range(5)
OPERATIONS: Final = ("insert", "update", "delete", "truncate", "read")
"""What happened to a row, by its number; ``read`` is a row that a snapshot has found."""

Codes = npt.NDArray[np.int8]
Numbers = npt.NDArray[np.int64]


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
class Transactions:
    """The transactions of a delivery, in the order of their commits."""

    id: tuple[str, ...]
    position: tuple[str, ...]
    """Where each ends in the source's log; a stream that begins there delivers the next one first."""
    committed: Numbers
    """When, in microseconds since 1970, by the database's clock."""


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
    """Why a row, by its number, has a value that its column's type cannot hold, which is null in ``rows``."""

    def __len__(self) -> int:
        return len(self.operation)


@dataclass(frozen=True)
class Truncation:
    """All rows of a table were removed at once."""

    table: SourceTable
    transactions: Transactions
    transaction: int
    index: int


@dataclass(frozen=True)
class Delivery:
    """What comes next in a source's history."""

    changes: tuple[TableChanges | Truncation, ...] = ()
    position: str | None = None
    """Where the last whole transaction of it ends, or the last moment of which the source knows that no
    transaction has ended before; None where there is no such moment since the last delivery."""


@dataclass(frozen=True)
class Chunk:
    """Rows of a table in the order of its key, as one moment has them."""

    rows: pa.RecordBatch
    end: str
    """A position by which all that this moment has seen is delivered; later changes may be in it too."""
    last: bool
    """Whether there is nothing behind it."""
    after: tuple[object, ...] | None = field(default=None)
    """The key of its last row, behind which the next chunk begins; None if it has no rows."""
    unfit: Mapping[int, str] = field(default_factory=dict)
    """As in ``TableChanges``."""
