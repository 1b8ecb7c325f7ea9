"""The times of events by devices whose clocks are wrong, as an expression of Spark's own.

Invariant: a row gets what ``headwater.device_clock`` gives for the same three times.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from headwater.device_clock import FIRST, LAST, Bounds


def of_columns(occurred: Column, sent: Column, received: Column, bounds: Bounds) -> Column:
    """Return a column of structs: at, earliest, latest, trusted."""
    happened, left, came = map(_micros, (occurred, sent, received))
    estimate = happened + (came - left)
    at = F.greatest(F.least(F.coalesce(estimate, happened), came), F.lit(FIRST))  # both skip nulls
    at = F.when(F.coalesce(happened, came).isNotNull(), at)
    trusted = F.coalesce(_believed(estimate, came, came - left, bounds), F.lit(False))
    earliest = at - F.lit(bounds.max_delay).cast("bigint")
    told = {
        "at": at,
        "earliest": F.when(trusted & (earliest >= FIRST), earliest),
        "latest": F.when(trusted, at).otherwise(came),
    }
    times = [F.timestamp_micros(each).alias(name) for name, each in told.items()]
    return F.struct(*times, trusted.alias("trusted"))


def _believed(estimate: Column, received: Column, offset: Column, bounds: Bounds) -> Column:
    sound = (estimate >= FIRST) & (estimate <= received)
    return sound if bounds.max_offset is None else sound & (F.abs(offset) <= bounds.max_offset)


def _micros(time: Column) -> Column:
    """Return a time as microseconds, null if no calendar has it."""
    number = F.unix_micros(time)
    return F.when(number.between(FIRST, LAST), number)
