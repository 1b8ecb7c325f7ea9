"""One message for several recipients."""

from __future__ import annotations

import sqlite3

from headwater.sinks.delivery import tables
from headwater.sinks.delivery.fan_out import fan_out


def test_each_recipient_gets_one_with_an_id_of_its_own() -> None:
    db = sqlite3.connect(":memory:")
    db.executescript(tables.OUTBOX.tables)
    row = {"id": "msg_1", "ordering_key": None, "recipient": None, "body": b"x", "state": "ready"}
    db.execute(tables.ADD, {**row, "version": 1, "batch": 0, "digest": b""})
    for _ in range(2):
        fan_out(db, ["ada", "grace"])
        found = db.execute("SELECT recipient, body FROM deliveries ORDER BY recipient").fetchall()
        assert found == [("ada", b"x"), ("grace", b"x")]
    assert len({id for (id,) in db.execute("SELECT id FROM deliveries")}) == 2
    db.close()
