"""The states of deliveries: one at a time of a ordering_key."""

from __future__ import annotations

import sqlite3

from headwater.sinks.delivery import tables


def test_the_next_of_a_lane_is_ready_when_the_one_before_is_done() -> None:
    db = sqlite3.connect(":memory:")
    db.executescript(tables.OUTBOX.tables)
    for number, ordering_key in enumerate(["a", "a", None, None, "b", "a"]):
        row = {
            "id": str(number),
            "ordering_key": ordering_key,
            "recipient": None,
            "body": b"",
            "state": "ready",
        }
        db.execute(tables.ADD, {**row, "version": 1, "batch": 0, "digest": b""})
    query = "SELECT id FROM deliveries WHERE state = 'ready' ORDER BY seq"
    assert [row[0] for row in db.execute(query)] == ["0", "2", "3", "4"]
    tables.remove(db, 1, "a")
    assert [row[0] for row in db.execute(query)] == ["1", "2", "3", "4"]
    assert (tables.pending(db), tables.published(db), tables.version_progress(db, 1)) == (5, 1, None)
    db.close()
