"""A row that a node rejects, and why: the one form that it has on its way to the dead-letter topic.

Operators, which know no engine, hand over a table of rows with their errors (``operators.operator.rejected``),
which also crosses Spark's workers so; in the driver it becomes this.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from headwater.operators.operator import ERROR


@dataclass(frozen=True)
class RejectedRow:
    """A row on which a node's code fails, or that has no key.

    A record of a topic, which the node has read, has its offset there. A row that an operator or the node's
    code has made has none, and is told as JSON.
    """

    error: str
    record: str | None = None
    """The row as JSON; of a record, None: it is read from its topic when it is written."""
    topic: str | None = None
    partition: int | None = None
    offset: int | None = None

    def __str__(self) -> str:
        return f'topic "{self.topic}", partition {self.partition}, offset {self.offset}: {self.error}'


def rejected_rows(tables: Sequence[pa.Table]) -> list[RejectedRow]:
    """Return the rows of tables that have the column ``ERROR``.

    >>> rejected_rows([pa.table({"id": [1], "_error": ["ValueError: no"]})])[0].record
    '{"id": 1}'
    """
    listed = [row for table in tables for row in table.to_pylist()]
    return [RejectedRow(row.pop(ERROR), json.dumps(row, default=str)) for row in listed]
