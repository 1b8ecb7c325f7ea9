"""A source's clock, handed to Spark: taken out of the rows, carried on as the watermark.

Invariant: the clock reaches every stateful operator of a query, whatever user code does with the
columns and rows, and no row that tells only the time reaches user code.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from headwater.engine.source import CLOCK
from headwater.sinks.fitting import DELETED

KEY = "headwater.key"
"""Metadata of the column that marks deletions: the key of the table."""
EVENT_TIME = "headwater.event_time"
"""Metadata of the column that says when an event happened; Spark keeps it through user code."""


def clocked(stream: DataFrame, event_time: str | None, key: Sequence[str] = ()) -> DataFrame:
    """Return a source's rows without its clock, which is now the query's watermark."""
    if CLOCK in stream.columns:
        stream = stream.withWatermark(CLOCK, "0 seconds").filter(_is_row()).drop(CLOCK)
    return marked(stream, event_time, key)


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
    told = [(field.metadata or {}).get(KEY, ()) for field in rows.schema if field.name == DELETED]
    return tuple(told[0]) if told and set(told[0]) <= set(rows.columns) else ()


def _is_row() -> Column:
    # Spark moves a user's filter below the watermark, where it would swallow the clock, unless a
    # filter lies between that may not be moved: one that is not deterministic in Spark's eyes.
    return F.when(F.spark_partition_id() >= 0, F.col(CLOCK).isNull())
