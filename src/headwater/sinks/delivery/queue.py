"""The outbox of one node, as its worker reads it: what is due, and what became of it.

Invariant: a delivery leaves the outbox only when it has been delivered, was summed up with others, or is
discarded; one that is set aside keeps its place before all later ones of its ordering key.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Sequence
from dataclasses import dataclass

from headwater.sinks import crash
from headwater.sinks.delivery import tables
from headwater.sinks.delivery.delivery import Outcome, OutgoingDelivery
from headwater.sinks.delivery.outbox import DeliveryOutbox, OutboxLease

_COLUMNS = "seq, id, body, ordering_key, attempts, failed_since, recipient"


@dataclass(frozen=True)
class SettledAttempt:
    """An attempt that has ended, and what follows from it."""

    delivery: OutgoingDelivery
    outcome: Outcome
    due: float = 0.0
    """When it is tried again, if it is."""


@dataclass(frozen=True)
class DueDeliveries:
    """What there is to do now."""

    deliveries: list[OutgoingDelivery]
    next_due: float | None = None
    """When the next one is due that is not among them."""
    is_dead: bool = False
    """Whether the endpoint is set aside, so that nothing is sent."""


class DeliveryQueue:
    """What waits in an outbox, for the runner that holds its lease."""

    def __init__(self, outbox: DeliveryOutbox, lease: OutboxLease):
        self.outbox, self._lease = outbox, lease

    def due(self, now: float, most: int, under_way: frozenset[int]) -> DueDeliveries:
        """Return up to so many deliveries that are to be sent now and are not under way.

        Raises ``Fenced`` if another runner has begun since.
        """
        with self.outbox.transaction() as db:
            self.outbox.check(db, self._lease)
            if db.execute("SELECT dead FROM outbox").fetchone()[0] is not None:
                return DueDeliveries([], is_dead=True)
            rows = db.execute(
                f"SELECT {_COLUMNS}, due FROM deliveries WHERE state = 'ready' ORDER BY due, seq LIMIT ?",  # noqa: S608
                (most + len(under_way) + 1,),
            ).fetchall()
        waiting = [(OutgoingDelivery(*row[:-1]), row[-1]) for row in rows if row[0] not in under_way]
        now_due = [delivery for delivery, due in waiting if due <= now][:most]
        later = [due for _, due in waiting if due > now]
        return DueDeliveries(now_due, later[0] if later else None)

    def settle(self, attempts: Sequence[SettledAttempt]) -> None:
        """Note what has become of deliveries."""
        with self.outbox.transaction() as db:
            self.outbox.check(db, self._lease)
            for each in attempts:
                _settle(db, each)
            crash.point("outbox: attempts noted")

    def set_aside_endpoint(self, reason: str) -> None:
        """Send nothing more until it is redriven."""
        with self.outbox.transaction() as db:
            self.outbox.check(db, self._lease)
            db.execute("UPDATE outbox SET dead = ?, dead_since = ?", (reason, time.time()))


def redrive(db: sqlite3.Connection) -> int:
    """Let everything that is set aside be sent again, in its order; return how much that is."""
    count = int(db.execute(SET_ASIDE).fetchone()[0])
    db.execute("UPDATE outbox SET dead = NULL, dead_since = NULL, error = NULL")
    db.execute(
        "UPDATE deliveries SET state = 'ready', due = 0, attempts = 0, failed_since = NULL, "
        "refused_at = NULL WHERE state IN ('refused', 'ready')"
    )
    return count


def discard(db: sqlite3.Connection, id: str) -> bool:
    """Remove a delivery that is set aside, so that those behind it can go; tell whether it was there."""
    query = "SELECT seq, ordering_key FROM deliveries WHERE id = ? AND state = 'refused'"
    row = db.execute(query, (id,)).fetchone()
    if row is not None:
        tables.remove(db, *row)
    return row is not None


SET_ASIDE = """
SELECT count(*) FROM deliveries WHERE state <> 'staged' AND (
    (SELECT dead FROM outbox) IS NOT NULL OR state = 'refused'
    OR (state = 'queued' AND ordering_key IN (SELECT ordering_key FROM deliveries WHERE state = 'refused'))
)
"""
"""Counts what is not tried any more: all of a dead endpoint, what was refused, and what is behind that."""


def _settle(db: sqlite3.Connection, attempt: SettledAttempt) -> None:
    delivery, outcome = attempt.delivery, attempt.outcome
    if outcome.result == "delivered":
        tables.remove(db, delivery.seq, delivery.ordering_key)
        db.execute("UPDATE outbox SET delivered = delivered + 1, error = NULL")
        return
    state, now = "refused" if outcome.result == "refused" else "ready", time.time()
    db.execute(
        "UPDATE deliveries SET state = ?, due = ?, attempts = attempts + 1, error = ?, "
        "failed_since = coalesce(failed_since, ?), refused_at = ? WHERE seq = ?",
        (state, attempt.due, outcome.reason, now, now if state == "refused" else None, delivery.seq),
    )
    db.execute("UPDATE outbox SET error = ?", (outcome.reason,))
