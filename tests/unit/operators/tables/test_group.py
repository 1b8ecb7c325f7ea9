"""Groups of tables against an oracle that aggregates the whole table anew after each step."""

from __future__ import annotations

import math
import pickle
from collections import defaultdict
from dataclasses import replace
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater import agg as aggs
from headwater.errors import UsageError
from headwater.operators.event_time import NEVER
from headwater.operators.operator import Operator
from headwater.operators.spec import Side
from headwater.operators.tables import retracting as agg
from headwater.schema import parse
from headwater.transforms import tables
from headwater.transforms.sample import sample
from soaking import examples
from unit.operators.bucketed import SCALES
from unit.operators.stepping import SPILLED, Row, TablesInMemory, listed, rank, table
from unit.operators.tables.tabling import (
    Key,
    Made,
    batch,
    change,
    changes_of,
    check_rescaled,
    gone,
    in_buckets,
    key_of,
    play,
    told,
    turns,
)

SCHEMA = parse(
    "id BIGINT, part STRING, k STRING, x DOUBLE, n BIGINT, small INT, d DECIMAL(20,2), s STRING, "
    "at TIMESTAMP, day DATE, yes BOOLEAN, other STRING, _deleted BOOLEAN"
)
PRIMARY = ("id", "part")
TINY, HUGE = 5e-324, 1.7e308
VALUES: dict[str, list[Any]] = {
    "id": [1, 2, 3, 4],
    "part": ["a", "b"],
    "k": [None, "p", "q"],
    "x": [None, 0.0, -0.0, 0.1, 1e16, -1e16, TINY, HUGE, -HUGE, math.inf, -math.inf, math.nan],
    "n": [None, 0, -5, 7, 2**63 - 1, -(2**63)],
    "small": [None, 1, -2],
    "d": [None, Decimal("0.01"), Decimal("-7.50"), Decimal("999999999999999999.99")],
    "s": [None, "", "é", "z"],
    "at": [None, 5, -3],
    "day": [None, date(1969, 7, 20), date(2024, 2, 29)],
    "yes": [None, True, False],
    "other": ["u", "v"],
}
U = "other = 'u'"
AGGREGATES: dict[str, agg.Retractable] = {
    "rows": agg.count(),
    "xs": agg.count("x"),
    "sum_x": agg.sum("x"),
    "sum_n": agg.sum("n"),
    "sum_small": agg.sum("small"),
    "sum_d": agg.sum("d"),
    "mean_x": agg.mean("x"),
    "mean_n": agg.mean("n"),
    "mean_d": agg.mean("d"),
    "min_x": agg.min("x"),
    "max_x": agg.max("x"),
    "top_x": agg.greatest("x", 2),
    "min_s": agg.min("s"),
    "max_d": agg.max("d"),
    "max_at": agg.max("at"),
    "min_day": agg.min("day"),
    "min_yes": agg.min("yes"),
    "top_s": agg.greatest("s", 3),
    "top_day": agg.greatest("day", 1),
    "rows_u": replace(agg.count(), where=U),
    "sum_n_u": replace(agg.sum("n"), where=U),
    "max_x_u": replace(agg.max("x"), where=U),
    "top_s_u": replace(agg.greatest("s", 2), where=U),
}


def grouping(by: str, **aggregates: agg.Retractable) -> Operator[Any]:
    return tables.group(by, **(aggregates or AGGREGATES)).build(Side(SCHEMA, None, PRIMARY))


def exact(some: list[Any]) -> Any:
    """The sum as a fraction, or as the float that it cannot be told as."""
    beside = [value for value in some if isinstance(value, float) and not math.isfinite(value)]
    return sum(beside) if beside else sum(map(Fraction, some))


def rounded(number: Any) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def summed(name: str, some: list[Any]) -> Any:
    total = exact(some)
    if name == "x":
        return rounded(total)
    if name == "d":
        return Decimal(int(total * 100)).scaleb(-2)
    return int(total) if -(2**63) <= total < 2**63 else None


def aggregate(each: agg.Retractable, rows: list[Row]) -> Any:
    rows = rows if each.where is None else [row for row in rows if row["other"] == "u"]
    some = [row[each.column] for row in rows if row[each.column] is not None] if each.column else rows
    if isinstance(each, agg.Count):
        return len(some)
    if isinstance(each, agg.Greatest):
        return [r["v"] for r in sorted(({"v": v} for v in some), key=rank, reverse=True)][: each.k]
    if not some:
        return None
    if isinstance(each, agg.Sum):
        return summed(each.column, some)
    if isinstance(each, agg.Mean):
        total = exact(some)
        return total if isinstance(total, float) else rounded(total / len(some))
    ordered = sorted(({"v": v} for v in some), key=rank)
    return ordered[-1 if isinstance(each, agg.Max) else 0]["v"]


def oracle(operator: Any, changes: list[Made]) -> dict[Key, Row]:
    rows: dict[Key, Row] = {}
    for made in changes:
        change(rows, PRIMARY, made.row)
    groups: dict[Key, list[Row]] = defaultdict(list)
    for row in rows.values():
        groups[key_of(row, operator.by)].append(row)
    return {
        key: {name: _plain(members[0][name]) for name in operator.by}
        | {name: aggregate(each, members) for name, each in operator.aggregates}
        | {"_deleted": False}
        for key, members in groups.items()
    }


def _plain(value: Any) -> Any:
    return value + 0.0 if isinstance(value, float) else value


def sent(changes: list[Made]) -> pa.Table:
    return table([made.row for made in changes], SCHEMA)


@pytest.mark.parametrize("by", ["k", "x", "k, s", "part", "k, part", "id, part"])
@examples(25)
@given(plan=turns(changes_of(0, PRIMARY, VALUES)))
def test_any_split_and_restart_gives_what_the_oracle_gives_after_each_step(by: str, plan: Any) -> None:
    operator = grouping(by)
    play(operator, plan, sent, lambda changes: oracle(operator, changes))
    together = [made for turn in plan for made in turn.changes]
    assert told(batch(operator, sent(together))) == told(oracle(operator, together))


@pytest.mark.parametrize("by", ["part", "k, part", "id, part"])
@examples(25)
@given(changes=st.lists(changes_of(0, PRIMARY, VALUES), max_size=25))
def test_buckets_give_together_what_one_gives(by: str, changes: list[Made]) -> None:
    operator = grouping(by)
    assert told(in_buckets(operator, sent(changes))) == told(oracle(operator, changes))


def test_an_aggregate_with_a_condition_is_declared_as_in_windows() -> None:
    orders = sample("id BIGINT, shop STRING, cents BIGINT", (1, "a", 5), (2, "a", 700), (3, "b", 9), key="id")
    some = {"big": aggs.count(where="cents > 100"), "small": aggs.sum("cents", where="cents < 100")}
    found = orders.transform(tables.group("shop", **some)).rows.to_pylist()
    assert [(row["shop"], row["big"], row["small"]) for row in found] == [("a", 1, 5), ("b", 0, 9)]
    with pytest.raises(UsageError, match="is no condition"):
        grouping("k", n=replace(agg.count(), where="n + 1")).output_schema(SCHEMA)


@pytest.mark.parametrize("by", ["k", "part", "k, part", "id, part"])
@examples(25)
@given(plan=turns(changes_of(0, PRIMARY, VALUES)), counts=SCALES)
def test_groups_that_are_rescaled(by: str, plan: Any, counts: list[int]) -> None:
    check_rescaled(grouping(by), [sent(turn.changes) for turn in plan], counts)


ORDERS = parse("id BIGINT, shop STRING, cents BIGINT, _deleted BOOLEAN")
SHOPS = tables.group("shop", orders=agg.count(), best=agg.max("cents")).build(Side(ORDERS, None, ("id",)))


def order(number: int, shop: str | None, cents: int = 5) -> Row:
    return {"id": number, "shop": shop, "cents": cents, "_deleted": False}


class Session:
    """An operator that is called step by step."""

    def __init__(self) -> None:
        self.state = SHOPS.initial_state(ORDERS)

    def __call__(self, *changes: Row) -> list[tuple[Any, ...]]:
        step = SHOPS.step(self.state, table(changes, ORDERS), NEVER)
        return [tuple(row.values()) for row in listed(step.out)]


def test_a_row_that_moves_changes_the_group_it_leaves_and_the_one_it_enters() -> None:
    session = Session()
    assert session(order(1, "b", 3), order(2, "b", 9), order(3, "a")) == [
        ("a", 1, 5, False),
        ("b", 2, 9, False),
    ]
    assert session(order(2, "a", 9)) == [("a", 2, 9, False), ("b", 1, 3, False)]


def test_the_greatest_value_goes_with_its_row_and_the_next_one_takes_its_place() -> None:
    session = Session()
    session(order(1, "a", 3), order(2, "a", 9))
    assert session(gone(order(2, "a"), ["id"])) == [("a", 1, 3, False)]


def test_a_group_that_loses_its_last_row_is_deleted_and_may_come_again() -> None:
    session = Session()
    session(order(1, "a"))
    assert session(gone(order(1, "a"), ["id"])) == [("a", None, None, True)]
    assert session(gone(order(1, "a"), ["id"])) == []
    assert session(order(2, "a", 1)) == [("a", 1, 1, False)]


def test_a_group_whose_aggregates_stay_the_same_is_not_told() -> None:
    session = Session()
    session(order(1, "a", 3), order(2, "a", 9))
    assert session(order(1, "a", 4)) == []
    assert session(order(1, "a", 9), order(2, "a", 4)) == []


def test_of_several_changes_of_a_key_in_a_step_the_last_one_counts() -> None:
    session = Session()
    assert session(order(1, "a"), order(1, "b"), order(2, "c"), gone(order(2, "c"), ["id"])) == [
        ("b", 1, 5, False)
    ]


def test_rows_without_a_group_are_a_group() -> None:
    assert Session()(order(1, None), order(2, None)) == [(None, 2, 5, False)]


def test_what_changes_nothing_is_not_stored() -> None:
    session = Session()
    session(order(1, "a"))
    step = SHOPS.step(session.state, table([order(1, "a"), gone(order(7, "x"), ["id"])], ORDERS), NEVER)
    assert len(step.out) == 0


def test_only_the_columns_needed_are_kept() -> None:
    state = grouping("k", rows=agg.count(), most=agg.max("n")).initial_state(SCHEMA)
    assert state.rows.rows().column_names == ["id", "part", "k", "n"]


def test_rows_are_spread_by_the_columns_of_the_group_that_the_primary_key_has() -> None:
    assert [grouping(by).key for by in ("k", "part", "k, part", "part, id")] == [
        (),
        ("part",),
        ("part",),
        ("part", "id"),
    ]
    assert grouping("k, part").identity == ("k", "part")


def test_memory_follows_the_rows_that_are_there() -> None:
    session, rng = Session(), np.random.default_rng(1)
    for _ in range(60):
        numbers = rng.integers(0, 200, 400).tolist()
        session(*(order(n, f"s{rng.integers(50)}", int(rng.integers(9))) for n in numbers))
        session(*(gone(order(n, ""), ["id"]) for n in numbers))
    memory = SHOPS.memory(session.state)
    assert memory is not None
    assert not memory.save(TablesInMemory(), SPILLED).stretches


def test_what_cannot_be_meant_is_refused() -> None:
    with pytest.raises(UsageError, match='group finds no column "kk"'):
        grouping("kk").output_schema(SCHEMA)
    with pytest.raises(UsageError, match='group has two columns "k"'):
        grouping("k", k=agg.count()).output_schema(SCHEMA)
    with pytest.raises(UsageError, match=r'sum\("s"\) cannot take values of type string'):
        grouping("k", total=agg.sum("s")).output_schema(SCHEMA)
    with pytest.raises(UsageError, match="goes over tables, and the input rows are none"):
        tables.group("k", n=agg.count()).build(Side(SCHEMA, None)).output_schema(SCHEMA)
    for wrong in (
        lambda: tables.group("k"),
        lambda: tables.group("", n=agg.count()),
        lambda: agg.greatest("n", 0),
    ):
        with pytest.raises(UsageError):
            wrong()
    with pytest.raises(UsageError, match='cannot take "n" as an aggregate'):
        tables.group("k", n="count")  # type: ignore[arg-type]


def test_an_operator_can_be_sent_to_a_worker() -> None:
    operator = grouping("k")
    assert pickle.loads(pickle.dumps(operator)) == operator
