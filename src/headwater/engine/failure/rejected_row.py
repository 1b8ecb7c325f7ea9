"""A row that a node rejects, and why: the one form that it has on its way to the dead-letter topic.

Operators, which know no engine, hand over a table of rows with their errors (``operator.rejected``), and in
that form rows cross Spark's workers; in the driver each becomes a ``RejectedRow``.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa

from headwater.operators.operator import ERROR


class RecordOffset(NamedTuple):
    """Where a record is."""

    topic: str
    partition: int
    offset: int

    def __str__(self) -> str:
        return f'topic "{self.topic}", partition {self.partition}, offset {self.offset}'


@dataclass(frozen=True)
class RejectedRow:
    """A row on which a node's code fails, or that has no key."""

    error: str
    source: RecordOffset | None = None
    """Where the node has read it; None for a row that an operator or the node's code has made."""
    record: str | None = None
    """The row as JSON; where it has a source that can be read, that is read when it is written."""

    def __str__(self) -> str:
        return f"{self.source}: {self.error}"


def rejected_rows(tables: Sequence[pa.Table]) -> list[RejectedRow]:
    """Return the rows of tables that have the column ``ERROR``.

    >>> rejected_rows([pa.table({"id": [1], "_error": ["ValueError: no"]})])[0].record
    '{"id": 1}'
    """
    listed = [row for table in tables for row in table.to_pylist()]
    return [RejectedRow(row.pop(ERROR), record=json.dumps(row, default=str)) for row in listed]
