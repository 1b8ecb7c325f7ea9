"""A rate limit of messages that people get: of those that come too fast they get one summary with the count.

So many messages may go in an interval. What comes beyond that in one go is summed up at once, in the last
message that may go; what comes later waits for the end of the interval and is summed up then. Invariant:
every message is sent itself or counted in one summary, and at most so many are sent in an interval.
"""

from __future__ import annotations

import re
import sqlite3
from dataclasses import dataclass

from headwater import durations
from headwater.errors import UsageError
from headwater.sinks.delivery import tables
from headwater.sinks.delivery.delivery import Composer
from headwater.sinks.delivery.drafts import delivery_id

SHOWN = 20
"""As many messages are shown in a summary."""
_LIMIT = re.compile(r"\s*(\d+)\s+(?:per|in|every)\s+(.+)", re.IGNORECASE)


@dataclass(frozen=True)
class MessageRate:
    """How many messages may go in how many seconds."""

    most: int
    seconds: float


def message_rate(text: str) -> MessageRate:
    """Read a limit.

    >>> message_rate("10 per 5 minutes")
    MessageRate(most=10, seconds=300.0)
    """
    parts = _LIMIT.fullmatch(text)
    if parts is None or int(parts[1]) < 1:
        raise UsageError(f'"{text}" is no limit of messages', hint='write it so: "10 per 5 minutes"')
    every = parts[2] if parts[2][0].isdigit() else f"1 {parts[2]}"
    return MessageRate(int(parts[1]), durations.interval(every).total_seconds())


@dataclass(frozen=True)
class RateLimiter:
    """Lets messages go that are held, within the limit."""

    limit: MessageRate
    composer: Composer

    def release_due(self, db: sqlite3.Connection, now: float) -> float | None:
        """Let go what may; return when to ask again if something is still held."""
        held = int(db.execute("SELECT count(*) FROM deliveries WHERE state = 'held'").fetchone()[0])
        if not held:
            return None
        start, sent = db.execute("SELECT window_start, window_sent FROM outbox").fetchone()
        over = not start <= now < start + self.limit.seconds  # also where the clock was set back
        after_excess = over and sent >= self.limit.most
        start, sent = (now, 0) if over else (start, sent)
        room = self.limit.most - sent
        if room <= 0:
            return float(start + self.limit.seconds)
        alone = 0 if after_excess and held > 1 else held if held <= room else room - 1
        self._release(db, alone)
        if held > alone:
            self._sum_up(db)
        used = sent + alone + (held > alone)
        db.execute("UPDATE outbox SET window_start = ?, window_sent = ?", (start, used))
        return None

    def _release(self, db: sqlite3.Connection, count: int) -> None:
        db.execute(
            "UPDATE deliveries SET state = 'ready' WHERE seq IN ("
            "SELECT seq FROM deliveries WHERE state = 'held' ORDER BY seq LIMIT ?)",
            (count,),
        )

    def _sum_up(self, db: sqlite3.Connection) -> None:
        query = "SELECT count(*), min(seq), max(version), max(batch) FROM deliveries WHERE state = 'held'"
        count, first, version, batch = db.execute(query).fetchone()
        shown = db.execute("SELECT body FROM deliveries WHERE state = 'held' ORDER BY seq LIMIT ?", (SHOWN,))
        body = self.composer.summary([row[0] for row in shown], count)
        (name,) = db.execute("SELECT id FROM outbox").fetchone()
        db.execute("DELETE FROM deliveries WHERE state = 'held'")
        summary = {
            "id": delivery_id(name, version, batch, f"summary of {count} from {first}"),
            "ordering_key": None,
            "recipient": None,
            "body": body,
            "state": "ready",
            "version": version,
            "batch": batch,
            "digest": b"",
        }
        db.execute(tables.ADD, summary)
