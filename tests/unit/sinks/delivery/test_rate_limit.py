"""Storms are summed up: every message is sent or counted, and no interval has too many."""

from __future__ import annotations

import sqlite3

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.errors import UsageError
from headwater.sinks.delivery import tables
from headwater.sinks.delivery.delivery import Kind
from headwater.sinks.delivery.rate_limit import MessageRate, RateLimiter, message_rate
from headwater.values.fitting import Fitted


class Counting:
    """Messages that are their number; a summary is how many there are."""

    def payloads(self, fitted: Fitted) -> list[bytes | None]:
        raise NotImplementedError

    def body(self, kind: Kind, payload: bytes, made: float) -> bytes:
        raise NotImplementedError

    def summary(self, bodies: list[bytes], count: int) -> bytes:
        return orjson.dumps({"count": count})


def add(db: sqlite3.Connection, number: int) -> None:
    row = {"id": str(number), "ordering_key": None, "recipient": None, "body": orjson.dumps({"count": 1})}
    db.execute(tables.ADD, {**row, "state": "held", "version": 1, "batch": 0, "digest": b""})


def released(db: sqlite3.Connection) -> list[int]:
    """Return what goes now, each with the number of messages that it stands for."""
    rows = db.execute("SELECT body FROM deliveries WHERE state = 'ready' ORDER BY seq").fetchall()
    db.execute("DELETE FROM deliveries WHERE state = 'ready'")
    return [orjson.loads(row[0])["count"] for row in rows]


@given(st.lists(st.tuples(st.floats(0, 30), st.integers(0, 12)), max_size=20), st.integers(1, 5))
def test_every_message_is_sent_or_counted_and_no_interval_has_too_many(
    arrivals: list[tuple[float, int]], most: int
) -> None:
    db = sqlite3.connect(":memory:")
    db.executescript(tables.OUTBOX.tables)
    limiter, now, added = RateLimiter(MessageRate(most, 10.0), Counting()), 1_000_000.0, 0
    sent = list[tuple[float, int]]()
    for wait, count in [*arrivals, (10.0, 0), (10.0, 0)]:
        now += wait
        for _ in range(count):
            add(db, added)
            added += 1
        again = limiter.release_due(db, now)
        assert again is None or now < again <= now + 10.0
        sent += [(now, each) for each in released(db)]
    assert sum(count for _, count in sent) == added
    starts = [at for at, _ in sent]
    for start in starts:  # two intervals may touch
        assert len([at for at in starts if start <= at < start + 10.0]) <= 2 * most
    db.close()


def test_a_few_messages_go_as_they_are() -> None:
    db = sqlite3.connect(":memory:")
    db.executescript(tables.OUTBOX.tables)
    limiter = RateLimiter(MessageRate(3, 10.0), Counting())
    for number in range(3):
        add(db, number)
    assert limiter.release_due(db, 100.0) is None and released(db) == [1, 1, 1]
    for number in range(3, 8):
        add(db, number)
    assert limiter.release_due(db, 101.0) == 110.0 and released(db) == []
    assert limiter.release_due(db, 110.0) is None and released(db) == [5]
    db.close()


@pytest.mark.parametrize("text", ["", "ten per minute", "0 per minute", "10", "10 per soon"])
def test_what_is_no_limit_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        message_rate(text)
    assert message_rate("3 per hour") == MessageRate(3, 3600.0)
