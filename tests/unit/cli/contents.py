"""What is in a topic, for assertions."""

from __future__ import annotations

from typing import Any

from headwater import Log


def rows(log: Log, topic: str = "orders", *columns: str) -> list[Any]:
    """Return the rows of a topic, or only the values of one column."""
    found = [row for batch in log.read(topic, meta=True) for row in batch.to_pylist()]
    return [row[columns[0]] for row in found] if columns else found
