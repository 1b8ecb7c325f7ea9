"""Compares the rows that a node should have with those that it has. No pyspark.

Two rows are equal as ``equality.py`` defines it. Invariant: a row is counted once, as equal, missing, extra
or different.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence

import pyarrow as pa

from headwater.engine.proof.equality import comparable
from headwater.engine.proof.verdict import Row, Rows, Verdict
from headwater.pipeline.declaration import Declaration


def compare_counts(node: Declaration, expected: Rows, stored: Rows, schema: pa.Schema) -> Verdict:
    """Compare rows that a node should have with those that it has, and how often it has each: a stream's."""
    wanted, present = (Counter(comparable(row, schema) for row in rows) for rows in (expected, stored))
    rows = {comparable(row, schema): row for row in (*expected, *stored)}
    missing, extra = (
        tuple(rows[form] for form in rest.elements()) for rest in (wanted - present, present - wanted)
    )
    return Verdict(node.name, (wanted & present).total(), missing, extra)


def compare_by_key(node: Declaration, expected: Rows, stored: Rows, schema: pa.Schema) -> Verdict:
    """Compare rows that a node should have with those that it has, by its key: a view's."""
    fields = [schema.field(name) for name in node.key]
    (wanted, twice), (present, again) = (_by_key(rows, fields) for rows in (expected, stored))
    both = [(wanted[key], present[key]) for key in wanted if key in present]
    different = tuple((a, b) for a, b in both if comparable(a, schema) != comparable(b, schema))
    missing = tuple(row for key, row in wanted.items() if key not in present)
    extra = tuple(row for key, row in present.items() if key not in wanted)
    return Verdict(node.name, len(both) - len(different), (*missing, *twice), (*extra, *again), different)


def _by_key(rows: Rows, key: Sequence[pa.Field]) -> tuple[dict[Hashable, Row], list[Row]]:
    """Return rows by their key, and those whose key another one has: no table by key can hold both."""
    first: dict[Hashable, Row] = {}
    again = [row for row in rows if first.setdefault(comparable(row, key), row) is not row]
    return first, again
