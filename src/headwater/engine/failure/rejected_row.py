"""A row that a node rejects, and why: the one form that it has on its way to the dead-letter topic.

Operators, which know no engine, hand over a table of rows with their errors (``operator.rejected``), and in
that form rows cross Spark's workers; in the driver each becomes a ``RejectedRow``.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa

from headwater.operators.decide import ORDER
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


def rejected_rows(tables: Sequence[pa.Table], commands: str | None = None) -> list[RejectedRow]:
    """Return the rows of tables that have the column ``ERROR``.

    Those that a node has read as the records of a topic of commands name their places in it.

    >>> rejected_rows([pa.table({"id": [1], "_error": ["ValueError: no"]})])[0].record
    '{"id": 1}'
    """
    return [
        _rejected_row(row, commands if set(ORDER) <= set(table.column_names) else None)
        for table in tables
        for row in table.to_pylist()
    ]


def _rejected_row(row: dict[str, Any], commands: str | None) -> RejectedRow:
    error = row.pop(ERROR)
    if commands is None:
        return RejectedRow(error, record=json.dumps(row, default=str))
    partition, offset = (row[name] for name in ORDER)
    return RejectedRow(error, RecordOffset(commands, partition, offset))
