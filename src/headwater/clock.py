"""Clocks, as users have them: the time now, times and lengths of time, and clocks of devices that are wrong.

Invariant: it is the public name of ``durations.py`` and ``device_clock.py``, and to the same as an
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

    - ``occurred``: when the event happened, by the device's clock.
    - ``sent``: when it was sent, by the device's clock.
    - ``received``: when it was received, by ours.
    - ``max_delay=None``: the longest that the way takes, ``"30 seconds"``; without it ``earliest`` is not
      known.
    - ``max_offset=None``: how far a clock may be off and still be trusted.

    The times are datetimes, or microseconds since 1970, or Arrow columns of either, or columns of
    Spark's; beside Arrow columns a single time may stand for all rows. One outside of the years 1 to 9999
    counts as missing.

    Out: of one event a ``headwater.device_clock.Corrected``, of columns a column of structs with its four
    fields: ``at``, the estimate, is ``occurred + (received - sent)``, for the clock is off by ``received -
    sent``, less what the way took; ``earliest`` and ``latest``, between which the true time lies; and
    ``trusted``. Not trusted is an estimate where a time is missing, or the event was sent before it
    occurred, or the clock is off by more than ``max_offset``; ``latest`` is then the receipt, ``earliest``
    is null, and ``at`` is the best there is.
    State: none; nothing is kept from one event to the next.

    >>> from datetime import UTC, datetime
    >>> occurred, sent = datetime(2020, 1, 1, 0, 0, tzinfo=UTC), datetime(2020, 1, 1, 0, 5, tzinfo=UTC)
    >>> estimate = correct(occurred, sent, datetime(2026, 3, 1, 12, tzinfo=UTC), max_delay="30 seconds")
    >>> str(estimate.at), str(estimate.earliest), estimate.trusted
    ('2026-03-01 11:55:00+00:00', '2026-03-01 11:54:30+00:00', True)
    """
    lengths = (None if each is None else interval(each) // MICROSECOND for each in (max_delay, max_offset))
    bounds = device_clock.Bounds(*lengths)
    if all(type(each).__module__.startswith("pyspark.") for each in (occurred, sent, received)):
        from headwater.engine.source.device_clock import of_columns

        return of_columns(occurred, sent, received, bounds)
    return device_clock.correct(occurred, sent, received, bounds)
