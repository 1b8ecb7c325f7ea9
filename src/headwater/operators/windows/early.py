"""What is shown of sessions that have not ended: when, and with which of their rows.

With a length of time, a session is shown with its rows from before the last multiple of it that the
clock has passed. These begin where the session begins, so it is told by the same start. It is held in
pieces, cut at the multiples that are still to come: what is shown is the first of them. With a number of
rows, a session that has so many is shown, and again when it has passed a multiple of them.

Invariant: the clock and what is held of a session decide whether it is shown; nothing else is remembered.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta

import numpy as np

from headwater.durations import MICROSECOND
from headwater.operators.aggregates.last_time import LastTime
from headwater.operators.event_time import NEVER, Times
from headwater.operators.groups import Flags, Numbers
from headwater.operators.memory.entries import Entries
from headwater.operators.windows.session_state import ends, partials
from headwater.operators.windows.windowing import Windowing, bounded


@dataclass(frozen=True)
class Early:
    """When open sessions are published: at multiples of a length of time or a number of rows, or never."""

    every: timedelta | int | None

    @property
    def period(self) -> int:
        """How often the clock makes open sessions be published; 0 for never."""
        return self.every // MICROSECOND if isinstance(self.every, timedelta) else 0

    @property
    def crowd(self) -> int:
        """How many more rows make an open session be published; 0 for no number."""
        return self.every if isinstance(self.every, int) else 0

    def held(self, windowing: Windowing) -> Windowing:
        """Return what partial results are of: the aggregates, and then what early results need."""
        if self.crowd:
            return windowing.counting
        if self.every is None:
            return windowing
        return replace(windowing, aggregates=(*windowing.aggregates, ("_last", LastTime())))

    def passed(self, watermark: int) -> int:
        """Return the last time to publish early that the clock has passed."""
        return bounded(watermark // self.period * self.period) if self.period else NEVER

    def following(self, at: int) -> int:
        """Return the first time to publish early that shows an event."""
        return bounded(self.passed(at) + self.period)

    def slots(self, at: Times, watermark: int) -> Numbers:
        """Return, as numbers that grow with time, between which times to publish early events are."""
        return np.maximum(at, bounded(self.passed(watermark) - 1)) // self.period if self.period else at * 0

    def shown(self, sessions: Entries, watermark: int) -> Flags:
        """Tell which sessions are shown if they are open at a clock."""
        return _last(sessions) >= self.crowd if self.crowd else sessions.minor < self.passed(watermark)

    def until(self, sessions: Entries, watermark: int, gap: int) -> Times:
        """Return which end is told of sessions: of one that is open, that of the rows that are shown."""
        reach = _last(sessions) + gap if self.period else ends(sessions)
        return np.where(ends(sessions) <= watermark, ends(sessions), reach)

    def grown(self, parts: Entries, new: Flags, session: Numbers, before: int, watermark: int) -> Flags:
        """Tell of which sessions, given their parts and which are new, there is more to show."""
        more = np.zeros(len(parts) and int(session[-1]) + 1, np.bool_)
        if self.crowd:
            known, all_rows = np.zeros((2, len(more)), np.int64)
            np.maximum.at(known, session[~new], _last(parts)[~new])
            np.add.at(all_rows, session, _last(parts))
            return all_rows // self.crowd > known // self.crowd
        due = (new | (parts.minor >= self.passed(before))) & (parts.minor < self.passed(watermark))
        more[session[due]] = True
        return more


def _last(sessions: Entries) -> Numbers:
    """Return what is held beside the aggregates: how many rows there are, or when the last one was."""
    found: Numbers = partials(sessions).column(-1).to_numpy()
    return found
