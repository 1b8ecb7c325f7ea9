"""A clock that stands still until a test sets it on, for deciders with timers.

Invariant: it never goes back.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from headwater.durations import MICROSECOND, instant, interval, micros
from headwater.errors import UsageError

BEGINNING = datetime(2026, 1, 1)


class ManualClock:
    """What time it is, in microseconds since 1970, as a test says.

    - ``start=BEGINNING``: the time at which it stands at first; the first of January 2026, 0:00 UTC.

    >>> clock = ManualClock()
    >>> clock.advance("15 minutes")
    >>> str(clock.time)
    '2026-01-01 00:15:00+00:00'
    """

    def __init__(self, start: datetime = BEGINNING):
        self._now = micros(start)

    def __call__(self) -> int:
        """Return the time."""
        return self._now

    @property
    def time(self) -> datetime:
        """The time as a datetime in UTC."""
        return instant(self._now)

    def advance(self, by: str | timedelta) -> None:
        """Set it on by a length of time.

        - ``by``: ``"15 minutes"``, or a ``timedelta``.
        """
        self._now += interval(by) // MICROSECOND

    def advance_to(self, to: datetime) -> None:
        """Set it on to a time.

        - ``to``: the time; one that is past is refused.
        """
        if micros(to) < self._now:
            raise UsageError(f"a clock does not go back, from {self.time} to {to}")
        self._now = micros(to)
