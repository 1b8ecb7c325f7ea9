"""What a queue tells of itself: how much waits, and what is dead.

Invariant: every message that the group has not acknowledged is counted in ``depth`` once, or in ``dead``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from headwater.values.json_ready import JsonReady


@dataclass(frozen=True)
class QueueStatus(JsonReady):
    """A queue as it is now."""

    topic: str
    group: str
    ready: int | None = None
    """Messages that can be delivered now. This and other counts are None where a backend does not tell."""
    in_flight: int | None = None
    """Delivered, and neither acknowledged nor given back."""
    delayed: int | None = None
    blocked: int | None = None
    """Waiting for the message of their key that comes before, in an ordered queue."""
    oldest: timedelta | None = None
    """Since when the oldest of all these has been there; None where there is none."""
    dead: int = 0
    """Dead letters that were neither redriven nor purged."""
    lost: int | None = None
    """Records that retention has removed before they were acknowledged, ever."""
    consumers: int | None = None
    """Those that have the queue open now."""
    problem: str | None = None
    """Why the queue cannot be opened, as its topic is gone, or another one; None where it can be."""

    @property
    def depth(self) -> int | None:
        """Messages that are still to be done; None where a backend does not tell."""
        counts = (self.ready, self.in_flight, self.delayed, self.blocked)
        return None if None in counts else sum(count or 0 for count in counts)

    def facts(self) -> dict[str, Any]:
        """Return its fields, and the depth."""
        return {**super().facts(), "depth": self.depth}


@dataclass(frozen=True)
class DeadMessage(JsonReady):
    """A message that is delivered no more."""

    offset: int
    """In the topic of dead letters."""
    value: Mapping[str, Any]
    headers: Mapping[str, bytes]
    """Its own, without those that tell of its death."""
    reason: str
    deliveries: int
    origin: str
    """Where it was: ``TOPIC:PARTITION:OFFSET``."""
    died: datetime
