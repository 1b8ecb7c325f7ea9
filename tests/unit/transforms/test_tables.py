"""What users write on tables, and which aggregates can give back a row that goes."""

from __future__ import annotations

from typing import Any

import pytest

from headwater import agg
from headwater.errors import UsageError
from headwater.operators.spec import Side
from headwater.operators.tables import retracting
from headwater.operators.tables.group import TableGroup
from headwater.schema import parse
from headwater.transforms.sample import sample
from headwater.transforms.tables import greatest, group

COLUMNS = "id BIGINT, shop STRING, cents BIGINT, _deleted BOOLEAN"
ORDERS = Side(parse(COLUMNS), None, ("id",))


def test_it_makes_its_operator_of_the_key_of_the_table_and_wants_every_change() -> None:
    transform = group("shop, id", rows=agg.count(), top=greatest("cents", 2))
    made = (("rows", retracting.count()), ("top", retracting.greatest("cents", 2)))
    assert transform.build(ORDERS) == TableGroup(("id",), ("shop", "id"), made)
    assert transform.tables == (0,)


@pytest.mark.parametrize(
    ("given", "made"),
    [
        (agg.count(), retracting.count()),
        (agg.count("cents"), retracting.count("cents")),
        (agg.sum("cents"), retracting.sum("cents")),
        (agg.mean("cents"), retracting.mean("cents")),
        (agg.min("cents"), retracting.min("cents")),
        (agg.max("cents"), retracting.max("cents")),
        (retracting.max("cents"), retracting.max("cents")),
    ],
    ids=repr,
)
def test_an_aggregate_of_windows_is_taken_as_one_that_can_give_back(given: Any, made: Any) -> None:
    operator: Any = group("shop", out=given).build(ORDERS)
    assert operator.aggregates == (("out", made),)


@pytest.mark.parametrize(
    "given", [agg.distinct("cents"), agg.last("cents"), agg.any("cents"), agg.stddev("cents")], ids=repr
)
def test_an_aggregate_that_cannot_give_back_is_refused_by_the_name_of_its_column(given: Any) -> None:
    with pytest.raises(UsageError, match='cannot take "out" as an aggregate') as refused:
        group("shop", out=given)
    assert "cannot be taken back when a row goes" in str(refused.value)


def test_what_cannot_be_meant_is_refused_at_once() -> None:
    with pytest.raises(UsageError, match="has no columns to go by"):
        group("", rows=agg.count())
    with pytest.raises(UsageError, match="has no aggregates"):
        group("shop")
    with pytest.raises(UsageError, match='cannot take "out" as an aggregate'):
        group("shop", out="count")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="greatest of 0 values has none"):
        greatest("cents", 0)


def test_a_row_that_moves_or_goes_is_given_back() -> None:
    rows = [(1, "oslo", 5, False), (2, "oslo", 9, False), (2, "rome", 7, False), (1, None, None, True)]
    out = sample(COLUMNS, *rows, key="id").transform(group("shop", n=agg.count(), best=agg.max("cents")))
    assert out.rows.to_pylist() == [{"shop": "rome", "n": 1, "best": 7, "_deleted": False}]
