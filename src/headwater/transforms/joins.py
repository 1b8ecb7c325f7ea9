"""The doors of joins: each has its right rows, and makes its operator when it meets the left ones."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

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
from headwater.transforms.transform import Transform


def within(
    right: Any,
    on: On,
    *,
    before: str | timedelta = "0 seconds",
    after: str | timedelta = "0 seconds",
    how: str = "inner",
    prefix: str | None = None,
) -> Transform:
    """Join each left row with the right rows of its key from ``before`` it to ``after`` it.

    See ``docs/operators/within.md``.
    """
    pairs, lengths = pairing("within", on), (durations.span(before), durations.span(after))
    _one_of("within", "how", how, HOW)

    def build(left: Side, other: Side) -> Within:
        times = (_timed("within", left, "left"), _timed("within", other, "right"))
        return Within(pairs, times, *lengths, how, prefix)

    return Transform("within", build, right, pairs)


def as_of(
    table: Any,
    on: On,
    *,
    at: str | None = None,
    how: str = "left",
    keep: str | timedelta | None = None,
    late: str = "drop",
    key: str | Sequence[str] = (),
    prefix: str | None = None,
) -> Transform:
    """Join each event with the row of a table that was valid when it happened.

    See ``docs/operators/as_of.md``.
    """
    pairs, back, identity = (
        pairing("as_of", on),
        None if keep is None else durations.interval(keep),
        listed(key),
    )
    _one_of("as_of", "how", how, ("left", "inner"))
    _one_of("as_of", "late", late, ("drop", "correct"))
    if late == "correct":
        _check_correcting(how, back, identity)

    def build(left: Side, right: Side) -> AsOf:
        _by_key("as_of", pairs, right)
        times = (_timed("as_of", left, "left"), _timed("as_of", right, "right"))
        return AsOf(pairs, times, at, how, back, identity if late == "correct" else (), prefix)

    return Transform("as_of", build, table, pairs, tables=(1,))


def lookup(table: Any, on: On, *, how: str = "left", prefix: str | None = None) -> Transform:
    """Join each row with the row of a table as it is known when it comes.

    See ``docs/operators/lookup.md``.
    """
    pairs = pairing("lookup", on)
    _one_of("lookup", "how", how, ("left", "inner"))

    def build(left: Side, right: Side) -> Lookup:
        _by_key("lookup", pairs, right)
        return Lookup(pairs, how, prefix)

    return Transform("lookup", build, table, pairs, tables=(1,))


def tables(right: Any, on: On, how: str = "inner", prefix: str | None = None) -> Transform:
    """Join the rows of two tables as they are now, and keep the result right as they change.

    The result is a table: all columns, and ``_deleted`` where a result is gone. See
    ``docs/operators/tables.md``.

    >>> tables(None, on={"customer_id": "id"}).pairing.on
    (('customer_id', 'id'),)
    """
    _one_of(table_shape.WHAT, "how", how, table_shape.HOW)
    pairs = pairing(table_shape.WHAT, on)

    def build(mine: Side, other: Side) -> TableJoin:
        return TableJoin(pairs, mine, other, how, prefix)

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
            hint=_meant(by, table)
            or "make a stream with the key that you need, @stream(key=…), and join that",
        )


def _meant(by: Sequence[str], table: Side) -> str | None:
    """Return a hint for the first column that the table has not."""
    unknown = [name for name in by if name not in table.schema.names]
    return nearest(unknown[0], table.schema.names) if unknown else None


def _one_of(what: str, name: str, given: str, known: Sequence[str]) -> None:
    if given not in known:
        raise UsageError(
            f'{what} knows no {name}="{given}"',
            detail=f"it is one of {', '.join(known)}",
            hint=nearest(given, known),
        )


def _timed(what: str, side: Side, name: str) -> str:
    """Return the event-time column of a side, or refuse rows that have none."""
    if side.event_time is None:
        raise UsageError(
            f"{what} needs to know when events happened, and its {name} rows have no event time",
            hint="declare event_time= at their source, and keep that column",
        )
    return side.event_time
