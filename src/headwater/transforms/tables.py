"""What users call on tables: ``orders.transform(tables.group("shop", orders=agg.count()))``.

Aggregates are declared as those of windows are, by ``agg``. Invariant: one that cannot give back a row
that goes is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from headwater.errors import UsageError
from headwater.names import listed
from headwater.operators.aggregates import extremes, totals
from headwater.operators.aggregates.aggregate import Aggregate
from headwater.operators.aggregates.filtered import Filtered
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
    """Group the rows of a table, with aggregates that stay right when rows change, move or go.

    - ``by``: the columns of the group: one, or several. Two nulls are one group. A filter before it is
      refused: filter the result.
    - ``**aggregates``: the columns out and what fills each, at least one: ``agg.count``, ``agg.sum``,
      ``agg.mean``, ``agg.min``, ``agg.max`` or ``tables.greatest``, each over all rows or those that its
      ``where=`` takes.

    Out: a table: the columns of ``by``, the aggregates, and ``_deleted``, true where a group has lost its
    last row. The columns of ``by`` tell results apart, and are the key for a view. A group comes out with
    the change that changes it, once for each micro-batch at the most.
    Order: that of the groups' columns. Changes of a key count in the order of arrival.
    Late: nothing.
    State: of each row its primary key, group and aggregated columns, until it is deleted; of each group its
    counts and sums, and for ``min``, ``max`` and ``greatest`` the values, until its last row goes.
    Restart: the state is as it was; what came out does not come out again.

    >>> from headwater import agg
    >>> from headwater.transforms.sample import sample
    >>> rows = [(1, "oslo", 500), (2, "oslo", 900), (3, "rome", 200)]
    >>> orders = sample("id BIGINT, shop STRING, cents BIGINT", *rows, key="id")
    >>> orders.transform(group("shop", orders=agg.count(), best=agg.max("cents"))).show()
    shop  orders  best  _deleted
    oslo  2       900   False
    rome  1       200   False

    More in ``docs/operators/group.md``.
    """
    names = listed(by)
    if not names:
        raise UsageError(f"{WHAT} has no columns to go by", hint="name at least one column")
    if not aggregates:
        raise UsageError(f"{WHAT} has no aggregates", hint="name at least one, such as rows=agg.count()")
    retractable = tuple((name, _retractable(name, each)) for name, each in aggregates.items())

    def build(rows: Side) -> TableGroup:
        return TableGroup(rows.table, names, retractable)

    return Transform(WHAT, build, tables=(0,))


def greatest(column: str, k: int) -> Retractable:
    """Keep the ``k`` greatest values of a column in each group of ``tables.group``.

    - ``column``: anything with an order. Nulls are passed over; NaN is greater than all numbers.
    - ``k``: how many, from 1 on.

    Out: an ARRAY, the greatest first, equal values as often as they are there; empty without values.
    State: every value of the group, so that the next one is known when one goes.

    >>> from headwater.transforms.sample import sample
    >>> rows = [(1, "oslo", 500), (2, "oslo", 900), (3, "oslo", 200)]
    >>> orders = sample("id BIGINT, shop STRING, cents BIGINT", *rows, key="id")
    >>> orders.transform(group("shop", best=greatest("cents", 2))).show("shop", "best")
    shop  best
    oslo  [900, 500]
    """
    return retracting.greatest(column, k)


def _retractable(name: str, aggregate: object) -> Retractable:
    if isinstance(aggregate, Retractable):
        return aggregate
    if isinstance(aggregate, Filtered):
        return replace(_retractable(name, aggregate.aggregate), where=aggregate.where)
    kind = _KINDS.get(type(aggregate))
    if kind is None:
        raise UsageError(
            f'{WHAT} cannot take "{name}" as an aggregate',
            detail=f"{aggregate!r:.60} cannot be taken back when a row goes"
            if isinstance(aggregate, Aggregate)
            else None,
            hint="use agg.count, sum, mean, min or max, or tables.greatest",
        )
    return kind(getattr(aggregate, "column") or "")  # noqa: B009  # each of these has one
