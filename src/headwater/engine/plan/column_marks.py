"""Marks on columns that user code carries along: which is the event time, and what the key of a table is.

Spark keeps the metadata of a column that is selected, renamed or aliased, and drops that of one that is
computed. Invariant: a mark that is found is that of the upstream's own column.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame

from headwater.record import DELETED

KEY = "headwater.key"
"""Metadata of the column that marks deletions: the key of the table."""
EVENT_TIME = "headwater.event_time"
"""Metadata of the column that says when an event happened."""


def marked(rows: DataFrame, event_time: str | None, key: Sequence[str] = ()) -> DataFrame:
    """Return rows whose event time can be found again behind user code, and the key if they are a table's."""
    if DELETED in rows.columns:
        rows = rows.withMetadata(DELETED, {KEY: list(key)})
    return rows if event_time is None else rows.withMetadata(event_time, {EVENT_TIME: True})


def event_time_of(rows: DataFrame) -> str | None:
    """Return the name that the event-time column has now, if it is still there."""
    return next((field.name for field in rows.schema if (field.metadata or {}).get(EVENT_TIME)), None)


def key_of(rows: DataFrame) -> tuple[str, ...]:
    """Return the key of the table whose changes rows are; nothing if they are none, or no longer tell."""
    keys = [(field.metadata or {}).get(KEY, ()) for field in rows.schema if field.name == DELETED]
    return tuple(keys[0]) if keys and set(keys[0]) <= set(rows.columns) else ()
