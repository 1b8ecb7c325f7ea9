"""Clocks, as users have them: the time now, times and lengths of time, and clocks of devices that are wrong.

Invariant: it is the public door to ``durations.py`` and ``device_clock.py``, and to the same as an
expression of Spark's; nothing of Headwater's own uses it.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from headwater import device_clock
from headwater.durations import (
    LONGEST,
    MICROSECOND,
    instant,
    interval,
    interval_text,
    micros,
    now,
    parse_instant,
    span,
)

__all__ = [
    "LONGEST",
    "MICROSECOND",
    "correct",
    "instant",
    "interval",
    "interval_text",
    "micros",
    "now",
    "parse_instant",
    "span",
]


def correct(
    occurred: Any,
    sent: Any,
    received: Any,
    *,
    max_delay: str | timedelta | None = None,
    max_offset: str | timedelta | None = None,
) -> Any:
    """Estimate when events happened that a device with a wrong clock tells of.

    ``occurred`` and ``sent`` are by the device's clock, ``received`` by ours. The device's clock is off
    by ``received - sent``, so the event happened at ``occurred + (received - sent)``, or before that by
    as much as the way took.

    Returns ``at`` (that estimate), ``earliest`` and ``latest`` (between which the true time lies), and
    ``trusted``. ``latest`` is the estimate, for no way takes less than no time; ``earliest`` is known only
    with ``max_delay``, the longest that the way takes. Not trusted is an estimate where one of the three
    times is missing, or the event was sent before it occurred, or the clock is off by more than
    ``max_offset``; ``latest`` is then the receipt, ``earliest`` is null, and ``at`` is the best there is.
    A time outside of the years 1 to 9999 counts as missing.

    The times are datetimes, or microseconds since 1970, or Arrow columns of either, or columns of
    Spark's; beside Arrow columns a single time may stand for all rows. Of one event it returns a
    ``headwater.device_clock.Corrected``, of columns a column of structs with these four fields. Nothing
    is kept from one event to the next.

    >>> from datetime import UTC, datetime
    >>> occurred, sent = datetime(2020, 1, 1, 0, 0, tzinfo=UTC), datetime(2020, 1, 1, 0, 5, tzinfo=UTC)
    >>> told = correct(occurred, sent, datetime(2026, 3, 1, 12, tzinfo=UTC), max_delay="30 seconds")
    >>> str(told.at), str(told.earliest), told.trusted
    ('2026-03-01 11:55:00+00:00', '2026-03-01 11:54:30+00:00', True)
    """
    lengths = (None if each is None else interval(each) // MICROSECOND for each in (max_delay, max_offset))
    bounds = device_clock.Bounds(*lengths)
    if all(type(each).__module__.startswith("pyspark.") for each in (occurred, sent, received)):
        from headwater.engine.source.device_clock import of_columns

        return of_columns(occurred, sent, received, bounds)
    return device_clock.correct(occurred, sent, received, bounds)
