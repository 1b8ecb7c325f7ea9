"""Joins: ``searches.transform(joins.within(clicks, on="session", after="1 hour"))``.

Invariant: what cannot be meant is refused when it is called; what depends on columns, when the left rows
come.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Literal

from headwater import durations
from headwater.errors import UsageError, nearest
from headwater.names import listed
from headwater.operators.joins.as_of import AsOf
from headwater.operators.joins.lookup import Lookup
from headwater.operators.joins.within import HOW, Within
from headwater.operators.pairing import On, Pairing, pairing
from headwater.operators.spec import Side
from headwater.operators.tables import shape as table_shape
from headwater.operators.tables.join import TableJoin
from headwater.transforms.settings import check_choice, required_event_time
from headwater.transforms.transform import Transform

How = Literal["inner", "left", "right", "full", "semi", "anti"]
TableHow = Literal["left", "inner"]
TablesHow = Literal["inner", "left", "right", "full"]


def within(
    right: Any,
    on: On,
    *,
    before: str | timedelta = "0 seconds",
    after: str | timedelta = "0 seconds",
    how: How = "inner",
    prefix: str | None = None,
) -> Transform:
    """Join each left row with the right rows of its key that are near it in event time.

    - ``right``: the other stream, a DataFrame; both streams need an event time.
    - ``on``: the key: a column, several, or the right name of each left one, ``{"customer_id": "id"}``. A
      null is equal to nothing.
    - ``before="0 seconds"``: how long before the left row a right one may be, inclusive.
    - ``after="0 seconds"``: how long after the left row a right one may be, inclusive.
    - ``how="inner"``: which rows come out: ``"inner"``, ``"left"``, ``"right"``, ``"full"``, ``"semi"``
      (each left row with a match, once) or ``"anti"`` (each left row without one).
    - ``prefix=None``: what a right column gets before its name where the name is taken.

    Out: the left columns, then the right ones without the key; ``"semi"`` and ``"anti"`` have the left ones
    only. A pair comes out at once, when its second row comes; a left row without a match when the watermark,
    the earlier one of both inputs, is past it by ``after``, a right one when it is past it by ``before``. A
    right row alone has its own time in the left event-time column.
    Order: pairs of new left rows, then of new right rows, then rows without a match; each by arrival.
    Late: a row of either side from before the watermark, or without an event time. It is counted, and kept in
    the topic ``PIPELINE.NODE.late``.
    State: the rows of both sides that can still have a match, and which have had one; until the watermark is
    past a left row by ``after``, past a right one by ``before``.
    Restart: the state is as it was; no pair comes out twice.

    >>> from headwater.transforms.sample import sample
    >>> searches = sample("session BIGINT, at TIMESTAMP", (1, "12:00"), (2, "12:05"), event_time="at")
    >>> clicks = sample("session BIGINT, url STRING, at TIMESTAMP", (1, "/a", "12:30"), event_time="at")
    >>> outcomes = within(clicks, on="session", after="1 hour", how="left", prefix="click_")
    >>> searches.transform(outcomes).show()
    session  at        url   click_at
    1        12:00:00  /a    12:30:00
    2        12:05:00  None  None

    More in ``docs/operators/within.md``.
    """
    pairs, lengths = pairing("within", on), (durations.span(before), durations.span(after))
    check_choice("within", "how", how, HOW)

    def build(left: Side, other: Side) -> Within:
        times = (
            required_event_time("within", left, "its left rows"),
            required_event_time("within", other, "its right rows"),
        )
        return Within(pairs, times, *lengths, how, prefix)

    return Transform("within", build, right, pairs)


def as_of(
    table: Any,
    on: On,
    *,
    at: str | None = None,
    how: TableHow = "left",
    keep: str | timedelta | None = None,
    late: Literal["drop", "correct"] = "drop",
    key: str | Sequence[str] = (),
    prefix: str | None = None,
) -> Transform:
    """Join each event with the row of a table that was valid when it happened.

    - ``table``: the table, a DataFrame; it and the events need an event time. A change is valid from its time
      until the next one of its key; a deletion is no row from then on.
    - ``on``: the key of the table: a column, several, or the table's name for each left column,
      ``{"customer_id": "id"}``. A null is equal to nothing.
    - ``at=None``: the left column with the time for which the table is asked; without it, the event time.
    - ``how="left"``: ``"left"`` emits an event without a row with nulls, ``"inner"`` does not emit it.
    - ``keep=None``: how far behind its event time an event may ask with ``at``, and how far behind the
      watermark a change may correct: ``"1 day"``. Without it, any time may be asked for, and all versions
      are kept.
    - ``late="drop"``: what a change of the table does that comes too late: ``"drop"`` leaves it out, also
      for later events; ``"correct"`` emits the events that it concerns again. It needs ``keep``, ``key``
      and ``how="left"``.
    - ``key=()``: with ``late="correct"``, the left columns that tell events apart.
    - ``prefix=None``: what a column of the table gets before its name where the name is taken.

    Out: the left columns, then those of the table without the key, and ``version_at``, since when that row
    was valid; with ``late="correct"`` also ``revision``, 0 at first. When the watermark, the earlier one of
    both inputs, has passed the event: a table that rarely changes holds events back, unless it declares
    ``idle`` or its writer sends marks.
    Order: by event time, then by the columns; corrections before new results.
    Late: an event or a change from before the watermark (with ``late="correct"`` a change: less ``keep``),
    an event that asks for more than ``keep`` before its time, a row without a time. It is counted, and kept
    in the topic ``PIPELINE.NODE.late``.
    State: the events that wait; of each key the versions that may still be asked for, which go when they
    were replaced before the watermark (less ``keep``); with ``late="correct"`` the events of the last
    ``keep``.
    Restart: the state is as it was; on a replay of the log the result is the same.

    >>> from headwater.transforms.sample import sample
    >>> orders = sample("id BIGINT, who STRING, at TIMESTAMP", (1, "ada", "12:30"), event_time="at")
    >>> tiers = [("ada", "silver", "12:00"), ("ada", "gold", "13:00")]
    >>> customers = sample("who STRING, tier STRING, at TIMESTAMP", *tiers, event_time="at", key="who")
    >>> orders.transform(as_of(customers, on="who")).show()
    id  who  at        tier    version_at
    1   ada  12:30:00  silver  12:00:00

    More in ``docs/operators/as_of.md``.
    """
    pairs, back, identity = (
        pairing("as_of", on),
        None if keep is None else durations.interval(keep),
        listed(key),
    )
    check_choice("as_of", "how", how, ("left", "inner"))
    check_choice("as_of", "late", late, ("drop", "correct"))
    if late == "correct":
        _check_correcting(how, back, identity)

    def build(left: Side, right: Side) -> AsOf:
        _by_key("as_of", pairs, right)
        times = (
            required_event_time("as_of", left, "its left rows"),
            required_event_time("as_of", right, "its right rows"),
        )
        return AsOf(pairs, times, at, how, back, identity if late == "correct" else (), prefix)

    return Transform("as_of", build, table, pairs, tables=(1,))


def lookup(table: Any, on: On, *, how: TableHow = "left", prefix: str | None = None) -> Transform:
    """Join each row, at once, with the row of a table as it is known when it comes.

    - ``table``: the table, a DataFrame. Neither side needs an event time.
    - ``on``: the key of the table: a column, several, or the table's name for each left column,
      ``{"customer_id": "id"}``. A null is equal to nothing.
    - ``how="left"``: ``"left"`` emits a row without a match with nulls, ``"inner"`` does not emit it.
    - ``prefix=None``: what a column of the table gets before its name where the name is taken.

    Out: the left columns, then those of the table without the key; in the micro-batch in which the row comes.
    A micro-batch takes the changes of the table first. What a row finds depends on what had arrived: a replay
    may give another result, and ``verify`` leaves such a node out. ``as_of`` does not depend on it.
    Order: left rows in the order of arrival. Of changes of a key the last to arrive counts, whatever its
    time.
    Late: nothing.
    State: the last row of each key of the table, until it is deleted or replaced.
    Restart: the state is as it was.

    >>> from headwater.transforms.sample import sample
    >>> alerts = sample("id BIGINT, team STRING", (1, "db"), (2, "web"))
    >>> on_call = sample("team STRING, who STRING", ("db", "ada"), key="team")
    >>> alerts.transform(lookup(on_call, on="team")).show()
    id  team  who
    1   db    ada
    2   web   None

    More in ``docs/operators/lookup.md``.
    """
    pairs = pairing("lookup", on)
    check_choice("lookup", "how", how, ("left", "inner"))

    def build(left: Side, right: Side) -> Lookup:
        _by_key("lookup", pairs, right)
        return Lookup(pairs, how, prefix)

    return Transform("lookup", build, table, pairs, tables=(1,))


def tables(right: Any, on: On, how: TablesHow = "inner", prefix: str | None = None) -> Transform:
    """Join the rows of two tables as they are now, and keep the result right as they change.

    - ``right``: the other table, a DataFrame. A filter before the join is refused: filter the result.
    - ``on``: a column, several, or the right name of each left one, ``{"customer_id": "id"}``. A null is
      equal to nothing.
    - ``how="inner"``: ``"inner"``; ``"left"`` where the right primary key is within ``on``; ``"right"``
      where the left one is; ``"full"`` where ``on`` is the primary key of both.
    - ``prefix=None``: what a right column gets before its name where the name is taken.

    Out: a table: the left columns, the right ones without those of ``on``, and ``_deleted``, true where a
    result is gone; then all but its identity is null. The identity, the key for a view, is the left primary
    key and what of the right one is not in ``on`` (``"left"``: the left one; ``"right"``: the right one). A
    result comes out with the change that changes it, once for each micro-batch at the most.
    Order: first what is gone, then what is new or changed. Changes of a key count in the order of arrival.
    Late: nothing.
    State: the rows of both tables as they are now, with all columns, until they are deleted: ``select`` what
    you need.
    Restart: the state is as it was; what came out does not come out again.

    >>> from headwater.transforms.sample import sample
    >>> posts = sample("id BIGINT, author STRING", (1, "ada"), (2, "bob"), key="id")
    >>> follows = sample("reader STRING, author STRING", ("eve", "ada"), key=["reader", "author"])
    >>> posts.transform(tables(follows, on="author")).show()
    id  author  reader  _deleted
    1   ada     eve     False

    More in ``docs/operators/tables.md``.
    """
    check_choice(table_shape.WHAT, "how", how, table_shape.HOW)
    pairs = pairing(table_shape.WHAT, on)

    def build(left: Side, right: Side) -> TableJoin:
        return TableJoin(pairs, left, right, how, prefix)

    return Transform(table_shape.WHAT, build, right, pairs, tables=(0, 1))


def _check_correcting(how: str, keep: timedelta | None, key: tuple[str, ...]) -> None:
    """Refuse corrections if nobody could tell what they correct, how long they go on, or what is gone."""
    wrong = "as_of cannot correct what has come out"
    if not key:
        raise UsageError(
            f"{wrong}: nothing tells its events apart", hint='name their columns, as in key="order_id"'
        )
    if keep is None:
        raise UsageError(f"{wrong} for ever", hint='say how far back corrections go, as in keep="1 day"')
    if how != "left":
        raise UsageError(
            f'{wrong} with how="{how}"',
            detail="an event whose row turns out to be deleted would have to disappear",
            hint='use how="left", and filter by version_at downstream',
        )


def _by_key(what: str, pairs: Pairing, table: Side) -> None:
    """Refuse to go by other columns than those that tell a table's rows apart."""
    by = [name for _, name in pairs.on]
    if table.table and set(by) != set(table.table):
        raise UsageError(
            f"{what} goes by the key of a table, and {', '.join(by)} is not it",
            detail=f"the key is {', '.join(table.table)}; a deletion has no other columns",
            hint=_nearest_column(by, table)
            or "make a stream with the key that you need, @stream(key=…), and join that",
        )


def _nearest_column(by: Sequence[str], table: Side) -> str | None:
    """Return a hint for the first column that the table has not."""
    unknown = [name for name in by if name not in table.schema.names]
    return nearest(unknown[0], table.schema.names) if unknown else None
