"""How a queue is doing: what waits in the log behind its cursors, and what it has taken in.

Invariant: a message is counted once, as what it is; one that is dying counts as in flight until its dead
letter is written.
"""

from __future__ import annotations

from datetime import timedelta

from headwater.durations import MICROSECOND
from headwater.log.embedded.queue.consumers import count_living
from headwater.log.embedded.queue.sources import QueueSources
from headwater.log.embedded.queue.store import STATES, QueueStore, set_cursor
from headwater.log.queue_report import QueueStatus


def status(
    store: QueueStore, sources: QueueSources, name: tuple[str, str], dead: int, now: int
) -> QueueStatus:
    """Return how much waits, is in flight, and is dead; ``name`` is topic and group."""
    counted = store.rows("SELECT state, COUNT(*) FROM messages GROUP BY 1")
    states = dict.fromkeys(STATES, 0) | {str(state): int(count) for state, count in counted}  # type: ignore[call-overload]
    [(received,)] = store.rows("SELECT MIN(received) FROM messages")
    [(lost,)] = store.rows("SELECT lost FROM queue")
    waiting, age = _in_log(store, sources)
    if received is not None:
        age = max(age, (now - int(received)) * MICROSECOND)  # type: ignore[call-overload]
    there = waiting + sum(states.values())
    return QueueStatus(
        topic=name[0],
        group=name[1],
        ready=waiting + states["ready"],
        in_flight=states["held"] + states["dying"],
        delayed=states["delayed"],
        blocked=states["blocked"],
        oldest=age if there else None,
        dead=dead,
        lost=int(lost),  # type: ignore[call-overload]
        consumers=count_living(store.path.with_suffix("")),
    )


def purge(store: QueueStore, sources: QueueSources) -> int:
    """Move the cursors to the ends, and forget what is not in flight; return how many messages that were."""
    with store.transaction(durable=True) as db:
        gone = 0
        for source, stored in sources.stored().items():
            for number in range(stored.topic.partitions):
                end = sources.stats(stored, number).extent().end
                gone += max(0, end - _cursor(store, source, stored.id, number))
                set_cursor(db, source, stored.id, number, end)
        return gone + db.execute("DELETE FROM messages WHERE state NOT IN ('held', 'dying')").rowcount


def _in_log(store: QueueStore, sources: QueueSources) -> tuple[int, timedelta]:
    """Return how many records lie behind the cursors, and the age of the oldest."""
    count, age = 0, timedelta()
    for source, stored in sources.stored().items():
        for number in range(stored.topic.partitions):
            cursor = _cursor(store, source, stored.id, number)
            lag = sources.stats(stored, number).lag("", {number: cursor})
            count, age = count + lag.records, max(age, lag.behind)
    return count, age


def _cursor(store: QueueStore, source: int, topic: str, number: int) -> int:
    query = "SELECT next FROM cursors WHERE source = ? AND topic = ? AND partition = ?"
    return max((int(row[0]) for row in store.rows(query, (source, topic, number))), default=0)  # type: ignore[call-overload]
