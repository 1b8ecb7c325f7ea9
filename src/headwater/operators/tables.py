"""What users call on tables: ``orders.transform(tables.group("shop", orders=agg.count()))``."""

from __future__ import annotations

from collections.abc import Sequence

from headwater.errors import UsageError
from headwater.operators.door import Door, Side
from headwater.operators.retracting import Retractable
from headwater.operators.table_group import WHAT, TableGroup


def group(by: str | Sequence[str], /, **aggregates: Retractable) -> Door:
    """Make a table of a table's groups, with aggregates that stay right when rows change or go.

    The result has the columns of the group, the aggregates, and ``_deleted`` where a group has lost its
    last row. See ``docs/operators/group.md``.

    >>> from headwater.operators import retracting as agg
    >>> group("shop", orders=agg.count(), best=agg.top_k("cents", 3)).name
    'tables.group'
    """
    names = (
        tuple(part.strip() for part in by.split(",") if part.strip()) if isinstance(by, str) else tuple(by)
    )
    if not names:
        raise UsageError(f"{WHAT} has no columns to go by", hint="name at least one column")
    if not aggregates:
        raise UsageError(f"{WHAT} has no aggregates", hint="name at least one, such as rows=agg.count()")
    for name, each in aggregates.items():
        if not isinstance(each, Retractable):
            raise UsageError(f'{WHAT} cannot take "{name}" as an aggregate', hint="such as agg.count()")

    def build(rows: Side) -> TableGroup:
        return TableGroup(rows.table, names, tuple(aggregates.items()))

    return Door(WHAT, build)
