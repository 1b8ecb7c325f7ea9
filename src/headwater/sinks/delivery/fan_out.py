"""A message for several recipients becomes one delivery for each, with an id and a fate of its own.

Invariant: each of those who are recipients at that moment gets one, however often the message is looked at.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Sequence

from headwater.sinks.delivery import tables


def fan_out(db: sqlite3.Connection, recipients: Sequence[str]) -> None:
    """Replace messages that name no recipient by one for each."""
    query = "SELECT seq, id, body, version, batch, digest FROM deliveries "
    unnamed = "WHERE state = 'ready' AND recipient IS NULL"
    for seq, id, body, version, batch, digest in db.execute(query + unnamed).fetchall():
        db.execute("DELETE FROM deliveries WHERE seq = ?", (seq,))
        db.executemany(
            tables.ADD,
            (
                {
                    "id": f"{id}_{hashlib.sha256(each.encode()).hexdigest()[:12]}",
                    "ordering_key": None,
                    "recipient": each,
                    "body": body,
                    "state": "ready",
                    "version": version,
                    "batch": batch,
                    "digest": digest,
                }
                for each in recipients
            ),
        )
