"""What users call on rows of one stream: ``orders.transform(dedup(on="id", within="1 hour"))``.

Invariant: what cannot be meant is refused when it is called; what depends on columns, when it meets a
DataFrame.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import pyarrow as pa

from headwater import durations
from headwater import schema as schemas
from headwater.names import listed
from headwater.operators.dedup import Dedup
from headwater.operators.latest import Latest
from headwater.operators.scan import Scan
from headwater.operators.spec import Side, setting_aside
from headwater.transforms.settings import required_event_time
from headwater.transforms.transform import Transform

Names = str | Sequence[str]


def dedup(on: Names, within: str | timedelta) -> Transform:
    """Pass on the first row of each key and leave out the copies that follow it.

    - ``on``: the key: a column, several (``"shop, id"`` or ``["shop", "id"]``). Two nulls are equal.
    - ``within``: how far apart in event time, before or after, rows of a key are copies: ``"1 hour"``. Rows
      that are exactly so far apart are not.

    Out: the rows as they came in, at once. Of several copies the first to arrive.
    Order: that of arrival.
    Late: a row from more than ``within`` before the watermark, or without an event time. It is counted, and
    kept in the topic ``PIPELINE.NODE.late``.
    State: the key and the time of each row passed on, until the watermark is ``2 * within`` ahead of it
    (memory is given back in pieces, so up to ``3 * within``).
    Restart: the state is as it was, so a copy of a row from before is a copy after it.

    >>> from headwater.transforms.sample import sample
    >>> rows = [(1, "12:00"), (1, "12:20"), (2, "12:30"), (1, "14:00")]
    >>> orders = sample("id BIGINT, at TIMESTAMP", *rows, event_time="at")
    >>> orders.transform(dedup(on="id", within="1 hour")).show()
    id  at
    1   12:00:00
    2   12:30:00
    1   14:00:00

    More in ``docs/operators/dedup.md``.
    """
    names, length = listed(on), durations.interval(within)

    def build(rows: Side) -> Dedup:
        return Dedup(names, length, required_event_time("dedup", rows))

    return Transform("dedup", build)


def latest(by: Names) -> Transform:
    """Keep the newest row of each key, by event time, and pass on each row that becomes it.

    - ``by``: the key: a column, or several. Two nulls are equal.

    Out: a row, at once, when it is newer than all of its key before it; of equal times the one with the
    greatest columns, from the first to the last. A view with the same key shows the current state.
    Order: of one micro-batch at most one row of a key comes out; the rows of a key only get newer.
    Late: no row, however old, but one without an event time; that one is counted, and kept in the topic
    ``PIPELINE.NODE.late``. A row that is not the newest is used without a word.
    State: the newest row of each key, with all its columns. It never goes: ``select`` the columns you need.
    Restart: the state is as it was; what was passed on is not passed on again.

    >>> from headwater.transforms.sample import sample
    >>> rows = [("ada", "Oslo", "12:00"), ("ada", "Rome", "14:00"), ("ada", "Bern", "13:00")]
    >>> moves = sample("who STRING, town STRING, at TIMESTAMP", *rows, event_time="at")
    >>> moves.transform(latest(by="who")).show()
    who  town  at
    ada  Rome  14:00:00

    More in ``docs/operators/latest.md``.
    """
    names = listed(by)

    def build(rows: Side) -> Latest:
        return Latest(names, required_event_time("latest", rows))

    return Transform("latest", build)


def scan(fold: Callable[..., Any], by: Names, schema: str | pa.Schema, vectorised: bool = False) -> Transform:
    """Fold the events of each key, in the order in which they happened, and emit the state after each.

    - ``fold``: ``fold(state, event)`` gets the state before an event as a dict, None at first, and the event
      as a dict; it returns a dict with exactly the columns of ``schema``. It must depend on nothing else.
    - ``by``: the key: a column, or several. Two nulls are equal.
    - ``schema``: the columns of the state, as Spark DDL or an Arrow schema.
    - ``vectorised=False``: True for a fold over many events at once: ``fold(before, events, groups)`` gets
      Arrow tables of the keys' states and of the events, and the number of each event's key; it returns an
      Arrow table with one row for each event.

    Out: the columns of ``by``, the event time and the state, once for each event, when the watermark has
    passed it: from then on no earlier event can come.
    Order: by event time within a key, of equal times by the columns; arrival plays no part.
    Late: an event from before the watermark, or without an event time. It is counted, and kept in the topic
    ``PIPELINE.NODE.late``.
    State: the last state of each key, which never goes, and the events that wait.
    Restart: both are as they were; each event is folded once. If the fold raises, the node stops, or with
    ``on_error="dead_letter"`` sets the event aside.

    >>> from headwater.transforms.sample import sample
    >>> def balance(state, event):
    ...     return {"balance": (state["balance"] if state else 0) + event["cents"]}
    >>> rows = [("ada", 500, "12:00"), ("ada", -200, "12:05")]
    >>> payments = sample("who STRING, cents BIGINT, at TIMESTAMP", *rows, event_time="at")
    >>> payments.transform(scan(balance, by="who", schema="balance BIGINT")).show()
    who  at        balance
    ada  12:00:00  500
    ada  12:05:00  300

    More in ``docs/operators/scan.md``.
    """
    names, state = listed(by), schemas.read(schema)

    def build(rows: Side) -> Scan:
        return Scan(fold, names, required_event_time("scan", rows), state, vectorised, setting_aside.get())

    return Transform("scan", build)
