"""An expression of a small part of Spark SQL: what it reads, what type it has, what it comes to.

``timestamp_millis(at)``, ``payload.meta.at / 1000 AS seconds``, ``price < 100 AND country <> 'PT'``. What is
not known is refused by name. Invariant: an expression that has a type over columns is computed for every
batch of them, in that type.
"""

from __future__ import annotations

import pyarrow as pa

from headwater.errors import HeadwaterError, UsageError, nearest
from headwater.expressions.parser import ParsedExpression, read, tokens


class Expression(ParsedExpression):
    """What is computed for each record, and what the column is called that holds it."""

    @property
    def column(self) -> str | None:
        """The column that it is, if it is nothing else."""
        name = self.text.strip("`")
        return name if self.name is None and self.columns == {name} else None

    def type(self, columns: pa.Schema) -> pa.DataType:
        """Return the type that it has over columns, or refuse them."""
        for name in self.columns:
            if name not in columns.names:
                hint = nearest(name, columns.names) or "columns: " + ", ".join(columns.names)
                raise UsageError(f'expression "{self.text}" has an unknown column "{name}"', hint=hint)
        nulls = [pa.nulls(1, field.type) for field in columns]
        try:
            return self.compute(pa.RecordBatch.from_arrays(nulls, columns.names)).type
        except HeadwaterError as error:
            raise UsageError(
                f'expression "{self.text}" cannot be computed', detail=error.message, hint=error.hint
            ) from None

    def over(self, batch: pa.RecordBatch) -> pa.Array:
        """Return it for each row of a batch."""
        return self.compute(batch)


def parse(text: str) -> Expression:
    """Return the expression that a text is, or refuse it."""
    found = read(text)
    return Expression(found.text, found.name, found.columns, found.compute)


def split(text: str) -> list[str]:
    """Return the expressions of a text that has commas between them."""
    parts, depth, start = list[str](), 0, 0
    for kind, value, at in tokens(text):
        if kind != "sign":
            continue
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(value, 0)
        if value == "," and depth == 0:
            parts.append(text[start:at].strip())
            start = at + 1
    return [*parts, text[start:].strip()]
