"""Messages that were taken in: held, given back, acknowledged, dying; by the token of their delivery."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

import pytest

from headwater.log.embedded.queue import delivery, store
from headwater.log.embedded.queue.delivery import Handle, Holder, NewMessage


@pytest.fixture
def db() -> Iterator[sqlite3.Connection]:
    db = sqlite3.connect(":memory:", isolation_level=None)
    db.executescript(store._TABLES)
    db.execute("INSERT INTO queue (one, id, topic, settings) VALUES (1, 'q', 't', '{}')")
    yield db
    db.close()


def new(
    offset: int, key: bytes | None = None, due: int | None = None, expires: int | None = None
) -> NewMessage:
    return NewMessage(store.TOPIC, 0, offset, 0, 0, due, expires, key, None)


def redriven(offset: int, key: bytes) -> NewMessage:
    return new(offset, key)._replace(source=store.RETRY)


def state(db: sqlite3.Connection) -> dict[int, str]:
    return dict(db.execute("SELECT offset, state FROM messages").fetchall())


def held(db: sqlite3.Connection, limit: int, token: int, until: int = 10) -> list[Handle]:
    found = delivery.ready(db, limit, 0)
    delivery.hold(db, found, Holder("c", token, until))
    return [Handle(each.seq, token, each.key) for each in found]


def test_records_are_taken_in_as_what_they_are(db: sqlite3.Connection) -> None:
    dying = NewMessage(0, 0, 4, 0, 0, None, None, None, "unreadable")
    delivery.insert(db, [new(0, b"a"), new(1, b"a"), new(2, due=99), new(3, b"b"), dying], now=5)
    assert state(db) == {0: "ready", 1: "blocked", 2: "delayed", 3: "ready", 4: "dying"}


def test_an_answer_with_another_token_changes_nothing(db: sqlite3.Connection) -> None:
    delivery.insert(db, [new(0)], now=0)
    [handle] = held(db, 1, token=7)
    stale = handle._replace(token=8)
    assert delivery.acknowledge(db, [stale], 0) == ([0], False)
    assert not delivery.extend(db, stale, 99)
    assert not delivery.postpone(db, stale, None, None)
    assert not delivery.condemn(db, stale, "no")
    assert state(db) == {0: "held"}
    assert delivery.acknowledge(db, [handle, handle], 0) == ([1], False)


def test_what_nobody_saw_is_given_back_with_the_deliveries_it_had(db: sqlite3.Connection) -> None:
    delivery.insert(db, [new(0), new(1)], now=0)
    mine, other = held(db, 2, token=7)
    delivery.undeliver(db, [mine, other._replace(token=8)])
    query = "SELECT offset, state, deliveries FROM messages ORDER BY offset"
    assert db.execute(query).fetchall() == [(0, "ready", 0), (1, "held", 1)]


def test_the_next_of_a_key_is_due_when_it_is_due(db: sqlite3.Connection) -> None:
    delivery.insert(db, [new(0, b"a"), new(1, b"a", due=50), new(2, b"a")], now=0)
    [handle] = held(db, 5, token=1)
    assert delivery.acknowledge(db, [handle], now=10) == ([], True)
    assert state(db) == {1: "delayed", 2: "blocked"}


def test_a_redriven_message_is_the_next_of_its_key_before_those_that_wait(db: sqlite3.Connection) -> None:
    delivery.insert(db, [new(0, b"a", due=50), new(1, b"a"), new(2, b"b")], now=0)
    delivery.insert(db, [redriven(10, b"a"), redriven(11, b"a")], now=0)
    assert state(db) == {0: "blocked", 1: "blocked", 2: "ready", 10: "ready", 11: "blocked"}
    order = []
    while taken := [each for each in delivery.ready(db, 5, now=60) if each.key == b"a"]:
        order += [each.offset for each in taken]
        delivery.hold(db, taken, Holder("c", 1, 99))
        delivery.acknowledge(db, [Handle(each.seq, 1, each.key) for each in taken], now=60)
    assert order == [10, 11, 0, 1]


def test_a_redriven_message_waits_for_one_that_was_delivered_and_given_back(db: sqlite3.Connection) -> None:
    delivery.insert(db, [new(0, b"a"), new(1, b"a")], now=0)
    [handle] = held(db, 1, token=1)
    delivery.insert(db, [redriven(10, b"a")], now=0)
    assert state(db) == {0: "held", 1: "blocked", 10: "blocked"}
    delivery.postpone(db, handle, None, None)
    assert state(db) == {0: "ready", 1: "blocked", 10: "blocked"}
    [handle] = held(db, 5, token=2)
    delivery.acknowledge(db, [handle], now=0)
    assert state(db) == {1: "blocked", 10: "ready"}


def test_what_cannot_be_read_or_has_expired_dies_when_it_is_its_turn(db: sqlite3.Connection) -> None:
    unreadable = new(1, b"a")._replace(problem="unreadable")
    delivery.insert(db, [new(0, b"a"), unreadable, new(2, b"a", expires=1)], now=5)
    [handle] = held(db, 5, token=1)
    delivery.insert(db, [redriven(10, b"a")], now=5)
    assert state(db) == {0: "held", 1: "blocked", 2: "blocked", 10: "blocked"}, "one at a time, whatever dies"
    delivery.acknowledge(db, [handle], now=5)
    [handle] = held(db, 5, token=2)
    delivery.acknowledge(db, [handle], now=5)
    assert state(db) == {1: "dying", 2: "blocked"}


def test_what_was_held_for_the_last_time_dies(db: sqlite3.Connection) -> None:
    delivery.insert(db, [new(0), new(1)], now=0)
    held(db, 1, token=1, until=10)
    delivery.revive(db, 10, max_deliveries=2)
    held(db, 2, token=2, until=20)
    delivery.revive(db, 20, max_deliveries=2)
    assert state(db) == {0: "dying", 1: "ready"}
    assert delivery.is_dying(db)


def test_what_a_consumer_has_is_released_with_it(db: sqlite3.Connection) -> None:
    delivery.insert(db, [new(0), new(1)], now=0)
    held(db, 1, token=1)
    assert delivery.consumers(db) == ["c"]
    assert delivery.release_consumer(db, "c", 5) == 1
    assert (state(db), delivery.consumers(db)) == ({0: "ready", 1: "ready"}, [])


def test_expired_messages_die_before_others_are_delivered(db: sqlite3.Connection) -> None:
    delivery.insert(db, [new(0, expires=5), new(1), new(2, expires=5)], now=0)
    assert delivery.ready(db, 2, now=6) == []
    assert [each.offset for each in delivery.ready(db, 2, now=6)] == [1]
    assert state(db) == {0: "dying", 1: "ready", 2: "dying"}


def test_lost_messages_are_counted_and_unblock_their_key(db: sqlite3.Connection) -> None:
    delivery.insert(db, [new(0, b"a"), new(1, b"a")], now=0)
    delivery.lose(db, delivery.ready(db, 1, 0), now=0)
    assert state(db) == {1: "ready"}
    assert db.execute("SELECT lost FROM queue").fetchone() == (1,)


def test_an_acknowledgement_looks_at_no_other_message(db: sqlite3.Connection) -> None:
    plans = [
        db.execute(f"EXPLAIN QUERY PLAN {query}", values).fetchall()
        for query, values in (
            ("DELETE FROM messages WHERE seq = ? AND token = ?", (1, 1)),
            ("SELECT seq FROM messages WHERE state = 'ready' ORDER BY priority DESC, seq LIMIT ?", (1,)),
            ("SELECT 1 FROM messages WHERE visible <= ? LIMIT 1", (1,)),
            ("SELECT 1 FROM messages WHERE state = 'dying' LIMIT 1", ()),
            ("SELECT MIN(seq) FROM messages WHERE key = ?", (b"a",)),
            ("SELECT MIN(seq) FROM messages WHERE key = ? AND seq > 0", (b"a",)),
            ("SELECT state FROM messages WHERE key = ? ORDER BY seq LIMIT 1", (b"a",)),
            ("SELECT MAX(seq) FROM messages WHERE seq < 0", ()),
            ("SELECT 1 FROM messages WHERE state = 'ready' AND expires <= ?", (1,)),
        )
    ]
    assert ["SEARCH" in plan[0][3] or "INDEX" in plan[0][3] for plan in plans] == [True] * 9
