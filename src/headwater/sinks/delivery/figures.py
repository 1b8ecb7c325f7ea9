"""How the deliveries of a node are doing, for those who look at it from any process.

Invariant: nothing is changed, and an outbox that is not there yet has nothing to tell.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from headwater.sinks.delivery.outbox import DeliveryOutbox
from headwater.sinks.delivery.queue import SET_ASIDE, discard, redrive
from headwater.sinks.delivery.tables import OUTBOX
from headwater.stores.sqlite.connection import SqliteReaders
from headwater.values.json_ready import JsonReady

_SHOWN = 10_000


@dataclass(frozen=True)
class DeliveryStatus(JsonReady):
    """The outbox of a node as it is now."""

    waiting: int
    """Deliveries that are still to be sent."""
    set_aside: int
    """Deliveries that are not tried any more until they are redriven."""
    delivered: int
    """Deliveries that have arrived, in all runs."""
    error: str | None = None
    """Why the newest attempt has failed; None if it has not."""
    dead: str | None = None
    """Why the endpoint is set aside, if it is."""

    @property
    def alert(self) -> str | None:
        """What somebody should look at."""
        if not self.set_aside and self.dead is None:
            return None
        why = f"the endpoint stays dead ({self.dead})" if self.dead else f"refused ({self.error})"
        many = "1 delivery is" if self.set_aside == 1 else f"{self.set_aside:,} deliveries are"
        return f"{many} set aside: {why}; mend it, then `headwater dead redrive`"


@dataclass(frozen=True)
class UndeliveredMessage:
    """A delivery that is not tried any more."""

    id: str
    error: str
    body: str
    at: datetime


def delivery_status(file: Path) -> DeliveryStatus | None:
    """Return how an outbox is doing; None where there is none yet."""
    if not file.exists():
        return None
    with _reading(file) as db:
        set_aside = int(db.execute(SET_ASIDE).fetchone()[0])
        every = int(db.execute("SELECT count(*) FROM deliveries WHERE state <> 'staged'").fetchone()[0])
        delivered, error, dead = db.execute("SELECT delivered, error, dead FROM outbox").fetchone()
        refused = db.execute("SELECT error FROM deliveries WHERE state = 'refused' LIMIT 1").fetchone()
    return DeliveryStatus(every - set_aside, set_aside, delivered, refused[0] if refused else error, dead)


def set_aside(file: Path) -> list[UndeliveredMessage]:
    """Return what is set aside, the oldest first: what was refused, or all of an endpoint that is dead."""
    if not file.exists():
        return []
    with _reading(file) as db:
        dead, since = db.execute("SELECT dead, dead_since FROM outbox").fetchone()
        rows = db.execute(
            "SELECT id, error, body, refused_at FROM deliveries WHERE state = 'refused' "
            "OR (? AND state <> 'staged') ORDER BY seq LIMIT ?",
            (dead is not None, _SHOWN),
        ).fetchall()
    return [
        UndeliveredMessage(
            id,
            error or dead or "",
            bytes(body).decode(errors="replace"),
            datetime.fromtimestamp(at or since, UTC),
        )
        for id, error, body, at in rows
    ]


def redrive_deliveries(file: Path) -> int:
    """Let what is set aside be sent again, by the runner that runs or the next; return how much that is."""
    if not file.exists():
        return 0
    with DeliveryOutbox(file, "outbox") as outbox, outbox.transaction() as db:
        return redrive(db)


def discard_delivery(file: Path, id: str) -> bool:
    """Give up a delivery that was refused, so that those behind it can go; tell whether it was there."""
    if not file.exists():
        return False
    with DeliveryOutbox(file, "outbox") as outbox, outbox.transaction() as db:
        return discard(db, id)


@contextmanager
def _reading(file: Path) -> Iterator[sqlite3.Connection]:
    readers = SqliteReaders(file, OUTBOX)
    try:
        with readers.snapshot() as db:
            yield db
    finally:
        readers.close()
