"""The door of joins between tables, which users call as ``joins.tables``."""

from __future__ import annotations

from typing import Any

from headwater.errors import UsageError
from headwater.operators.door import JoinDoor, Side
from headwater.operators.pairing import On, pairing
from headwater.operators.table_join import TableJoin
from headwater.operators.table_shape import HOW, WHAT


def tables(right: Any, on: On, how: str = "inner", prefix: str | None = None) -> JoinDoor:
    """Join the rows of two tables as they are now, and keep the result right as they change.

    The result is a table: all columns, and ``_deleted`` where a result is gone. See
    ``docs/operators/tables.md``.

    >>> tables(None, on={"customer_id": "id"}).pairing.on
    (('customer_id', 'id'),)
    """
    if how not in HOW:
        raise UsageError(f'{WHAT} knows no how="{how}"', hint=f"it is one of {', '.join(HOW)}")
    pairs = pairing(WHAT, on)

    def build(mine: Side, other: Side) -> TableJoin:
        return TableJoin(pairs, mine, other, how, prefix)

    return JoinDoor(WHAT, right, pairs, build)
