"""What users call on tables: ``orders.transform(tables.group("shop", orders=agg.count()))``.

Aggregates are declared as those of windows are, by ``agg``. Invariant: one that cannot give back a row
that goes is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from headwater.errors import UsageError
from headwater.names import listed
from headwater.operators.aggregates import extremes, totals
from headwater.operators.aggregates.aggregate import Aggregate
from headwater.operators.spec import Side
from headwater.operators.tables import retracting
from headwater.operators.tables.group import WHAT, TableGroup
from headwater.operators.tables.retracting import Retractable
from headwater.transforms.transform import Transform

_KINDS: dict[type, Callable[[str], Retractable]] = {
    totals.Count: retracting.Count,
    totals.Sum: retracting.Sum,
    totals.Mean: retracting.Mean,
    extremes.Min: retracting.Min,
    extremes.Max: retracting.Max,
}


def group(by: str | Sequence[str], /, **aggregates: Aggregate | Retractable) -> Transform:
    """Make a table of a table's groups, with aggregates that stay right when rows change or go.

    The result has the columns of the group, the aggregates, and ``_deleted`` where a group has lost its
    last row. See ``docs/operators/group.md``.

    >>> from headwater import agg
    >>> group("shop", orders=agg.count(), best=greatest("cents", 3)).name
    'tables.group'
    """
    names = listed(by)
    if not names:
        raise UsageError(f"{WHAT} has no columns to go by", hint="name at least one column")
    if not aggregates:
        raise UsageError(f"{WHAT} has no aggregates", hint="name at least one, such as rows=agg.count()")
    made = tuple((name, _retractable(name, each)) for name, each in aggregates.items())

    def build(rows: Side) -> TableGroup:
        return TableGroup(rows.table, names, made)

    return Transform(WHAT, build, tables=(0,))


def greatest(column: str, k: int) -> Retractable:
    """Keep the ``k`` greatest values of a column, the greatest first."""
    return retracting.greatest(column, k)


def _retractable(name: str, given: object) -> Retractable:
    if isinstance(given, Retractable):
        return given
    known = _KINDS.get(type(given))
    if known is None:
        raise UsageError(
            f'{WHAT} cannot take "{name}" as an aggregate',
            detail=f"{given!r:.60} cannot be taken back when a row goes"
            if isinstance(given, Aggregate)
            else None,
            hint="use agg.count, sum, mean, min or max, or tables.greatest",
        )
    return known(getattr(given, "column") or "")  # noqa: B009  # each of these has one
