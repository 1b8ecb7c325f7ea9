"""What happens to messages that a queue has taken in: held, given back, acknowledged, dying. All of it SQL.

Every function works within a transaction of ``QueueStore``. Messages are numbered in the order in which they
are delivered; those that are redriven have numbers below all others, so that they are the next of their key.
Invariant: whoever acknowledges, extends or gives back names the token of its delivery; of another delivery
nothing is changed. Of the messages of a key in an ordered queue all but one are blocked.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from itertools import count
from typing import NamedTuple

from headwater.log.embedded.queue.store import RETRY, TOPIC

_RELEASE = "UPDATE messages SET state = 'ready', visible = NULL, token = NULL, consumer = NULL"
_LET_DIE = (
    "UPDATE messages SET state = 'dying', visible = NULL, token = NULL, consumer = NULL, "
    "reason = COALESCE(?, reason)"
)
_FIRST_REDRIVEN = -(1 << 62)
EXPIRED = "expired"
UNACKNOWLEDGED = "not acknowledged in time"


class Handle(NamedTuple):
    """What a delivered message is known by."""

    seq: int
    token: int
    key: bytes | None


class Holder(NamedTuple):
    """Who gets messages, and until when they are its own."""

    consumer: str
    token: int
    visible: int


class TakenMessage(NamedTuple):
    """A row of a message that is about to be delivered."""

    seq: int
    source: int
    partition: int
    offset: int
    deliveries: int
    key: bytes | None


class NewMessage(NamedTuple):
    """A record that is taken in."""

    source: int
    partition: int
    offset: int
    received: int
    priority: int
    due: int | None
    expires: int | None
    key: bytes | None
    problem: str | None


def revive(db: sqlite3.Connection, now: int, max_deliveries: int) -> None:
    """Let what was delayed until now, or held until now, be delivered again, or die."""
    _release(db, "visible <= ?", now, max_deliveries)


def release_consumer(db: sqlite3.Connection, consumer: str, max_deliveries: int) -> int:
    """Give back what a consumer has that has died or goes; return how many messages that were."""
    return _release(db, "visible IS NOT NULL AND consumer = ?", consumer, max_deliveries)


def _release(db: sqlite3.Connection, which: str, value: object, max_deliveries: int) -> int:
    last = f"{which} AND state = 'held' AND deliveries >= ?"
    dying = db.execute(f"{_LET_DIE} WHERE {last}", (UNACKNOWLEDGED, value, max_deliveries))
    released = db.execute(f"{_RELEASE} WHERE {which}", (value,))
    return dying.rowcount + released.rowcount


def consumers(db: sqlite3.Connection) -> list[str]:
    """Return the consumers that have messages."""
    query = "SELECT DISTINCT consumer FROM messages WHERE visible IS NOT NULL AND consumer IS NOT NULL"
    return [str(row[0]) for row in db.execute(query)]


def ready(db: sqlite3.Connection, limit: int, now: int) -> list[TakenMessage]:
    """Return messages to be delivered, in their order; or none where some had expired, and are dying now.

    What waits behind those that die may come before others, by its priority: so they are to go first.
    """
    if db.execute(f"{_LET_DIE} WHERE state = 'ready' AND expires <= ?", (EXPIRED, now)).rowcount:
        return []
    query = (
        "SELECT seq, source, partition, offset, deliveries, key FROM messages "
        "WHERE state = 'ready' ORDER BY priority DESC, seq LIMIT ?"
    )
    return [TakenMessage(*row) for row in db.execute(query, (limit,))]


def ready_count(db: sqlite3.Connection, limit: int) -> int:
    """Return how many messages could be delivered, up to a limit."""
    query = "SELECT COUNT(*) FROM (SELECT 1 FROM messages WHERE state = 'ready' LIMIT ?)"
    return int(db.execute(query, (limit,)).fetchone()[0])


def hold(db: sqlite3.Connection, messages: Iterable[TakenMessage], holder: Holder) -> None:
    """Give messages to a consumer."""
    db.executemany(
        "UPDATE messages SET state = 'held', visible = ?, token = ?, consumer = ?, "
        "deliveries = deliveries + 1 WHERE seq = ?",
        [(holder.visible, holder.token, holder.consumer, each.seq) for each in messages],
    )


def insert_held(
    db: sqlite3.Connection, place: tuple[int, int], records: Sequence[tuple[int, int]], holder: Holder
) -> range:
    """Take in records, as offset and time of receipt, and give them to a consumer; return their numbers."""
    first = _next_number(db, TOPIC)
    db.executemany(
        "INSERT INTO messages (seq, source, partition, offset, received, state, visible, deliveries, token, "
        "consumer) VALUES (?, ?, ?, ?, ?, 'held', ?, 1, ?, ?)",
        [
            (seq, *place, offset, received, holder.visible, holder.token, holder.consumer)
            for seq, (offset, received) in enumerate(records, first)
        ],
    )
    return range(first, first + len(records))


def insert(db: sqlite3.Connection, messages: Sequence[NewMessage], now: int) -> None:
    """Take in records: to be delivered, or later, or behind another one of their key."""
    numbers = {source: count(_next_number(db, source)) for source in (TOPIC, RETRY)}
    _step_back(db, {each.key for each in messages if each.source == RETRY and each.key is not None})
    db.executemany(  # behind another one of its key a message waits, whatever else there is to say of it
        "INSERT INTO messages (source, partition, offset, received, priority, due, expires, key, reason, "
        "deliveries, seq, state, visible) SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 0, ?11, "
        "CASE WHEN blocked THEN 'blocked' WHEN ?9 IS NOT NULL THEN 'dying' WHEN ?7 <= ?10 THEN 'ready' "
        "WHEN ?6 > ?10 THEN 'delayed' ELSE 'ready' END, "
        "CASE WHEN ?9 IS NULL AND NOT blocked AND ?6 > ?10 AND (?7 IS NULL OR ?7 > ?10) THEN ?6 END "
        "FROM (SELECT COALESCE((SELECT seq < 0 OR state != 'blocked' FROM messages WHERE key = ?8 "
        "ORDER BY seq LIMIT 1), FALSE) AS blocked)",
        [(*each, now, next(numbers[each.source])) for each in messages],
    )


def _step_back(db: sqlite3.Connection, keys: Iterable[bytes]) -> None:
    """Let the next message of each key wait for one that is redriven, if it has never been delivered."""
    db.executemany(
        "UPDATE messages SET state = 'blocked', visible = NULL "
        "WHERE seq = (SELECT MIN(seq) FROM messages WHERE key = ? AND seq > 0) "
        "AND deliveries = 0 AND state IN ('ready', 'delayed')",
        [(key,) for key in keys],
    )


def _next_number(db: sqlite3.Connection, source: int) -> int:
    which, before = ("seq < 0", _FIRST_REDRIVEN) if source == RETRY else ("seq > 0", 0)
    query = f"SELECT COALESCE(MAX(seq), {before}) + 1 FROM messages WHERE {which}"  # noqa: S608
    return int(db.execute(query).fetchone()[0])


def acknowledge(db: sqlite3.Connection, handles: Sequence[Handle], now: int) -> tuple[list[int], bool]:
    """Remove messages; return the places of those that are another's, and whether keys were unblocked."""
    stale, unblocked = [], False
    for place, handle in enumerate(handles):
        done = db.execute("DELETE FROM messages WHERE seq = ? AND token = ?", handle[:2])
        if not done.rowcount:
            stale.append(place)
        elif handle.key is not None:
            unblocked = unblock(db, handle.key, now) or unblocked
    return stale, unblocked


def delivered(db: sqlite3.Connection) -> list[tuple[str | None, TakenMessage]]:
    """Return messages that were delivered and are not done, and the consumer that has each, if one has."""
    query = (
        "SELECT consumer, seq, source, partition, offset, deliveries, key FROM messages "
        "WHERE deliveries > 0 AND state IN ('ready', 'held')"
    )
    return [(row[0], TakenMessage(*row[1:])) for row in db.execute(query)]


def remove(db: sqlite3.Connection, messages: Sequence[TakenMessage], now: int) -> bool:
    """Remove messages that no living consumer has; return whether keys were unblocked."""
    db.executemany("DELETE FROM messages WHERE seq = ?", [(each.seq,) for each in messages])
    unblocked = [unblock(db, each.key, now) for each in messages if each.key is not None]
    return any(unblocked)


def unblock(db: sqlite3.Connection, key: bytes, now: int) -> bool:
    """Let the next message of a key be delivered, or die if it could not be read; tell if there is one."""
    changed = db.execute(
        "UPDATE messages SET state = CASE WHEN reason IS NOT NULL THEN 'dying' "
        "WHEN due > ?1 THEN 'delayed' ELSE 'ready' END, "
        "visible = CASE WHEN reason IS NULL AND due > ?1 THEN due END "
        "WHERE seq = (SELECT MIN(seq) FROM messages WHERE key = ?2) AND state = 'blocked'",
        (now, key),
    )
    return bool(changed.rowcount)


def postpone(db: sqlite3.Connection, handle: Handle, visible: int | None, reason: str | None) -> bool:
    """Give a message back, to be delivered from a time on; False if it is another's."""
    state = "ready" if visible is None else "delayed"
    changed = db.execute(
        "UPDATE messages SET state = ?, visible = ?, token = NULL, consumer = NULL, reason = ? "
        "WHERE seq = ? AND token = ?",
        (state, visible, reason, handle.seq, handle.token),
    )
    return bool(changed.rowcount)


def undeliver(db: sqlite3.Connection, handles: Iterable[Handle]) -> None:
    """Give messages back as if they had not been delivered; those of another stay as they are."""
    db.executemany(
        f"{_RELEASE}, deliveries = deliveries - 1 WHERE seq = ? AND token = ?",
        [handle[:2] for handle in handles],
    )


def extend(db: sqlite3.Connection, handle: Handle, visible: int) -> bool:
    """Keep a message until a time; False if it is another's."""
    query = "UPDATE messages SET visible = ? WHERE seq = ? AND token = ?"
    return bool(db.execute(query, (visible, handle.seq, handle.token)).rowcount)


def condemn(db: sqlite3.Connection, handle: Handle, reason: str) -> bool:
    """Let a message die, of which the caller is the holder; False if it is another's."""
    changed = db.execute(f"{_LET_DIE} WHERE seq = ? AND token = ?", (reason, handle.seq, handle.token))
    return bool(changed.rowcount)


def lose(db: sqlite3.Connection, messages: Sequence[TakenMessage], now: int) -> None:
    """Remove messages whose records retention has removed, and count them."""
    db.executemany("DELETE FROM messages WHERE seq = ?", [(each.seq,) for each in messages])
    count_lost(db, len(messages))
    for each in messages:
        if each.key is not None:
            unblock(db, each.key, now)


def count_lost(db: sqlite3.Connection, records: int) -> None:
    """Count records that retention has removed before they were received."""
    db.execute("UPDATE queue SET lost = lost + ?", (records,))


def is_dying(db: sqlite3.Connection) -> bool:
    """Tell whether there are messages to be moved to the dead letters."""
    return db.execute("SELECT 1 FROM messages WHERE state = 'dying' LIMIT 1").fetchone() is not None


def next_time(db: sqlite3.Connection) -> int | None:
    """Return when the next message that is delayed or held can be delivered."""
    found = db.execute("SELECT MIN(visible) FROM messages WHERE visible IS NOT NULL").fetchone()[0]
    return None if found is None else int(found)
