"""What users write to join, and what they are told when it cannot be."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from headwater import joins
from headwater.errors import UsageError
from headwater.operators.joins.as_of import AsOf
from headwater.operators.joins.lookup import Lookup
from headwater.operators.joins.within import Within
from headwater.operators.pairing import Pairing
from headwater.operators.spec import Side
from headwater.schema import parse

ORDERS = Side(parse("id BIGINT, customer_id BIGINT, placed TIMESTAMP, at TIMESTAMP"), "at")
CUSTOMERS = Side(parse("id BIGINT, tier STRING, since TIMESTAMP, _deleted BOOLEAN"), "since", ("id",))
ON = {"customer_id": "id"}
PAIRING = Pairing((("customer_id", "id"),))


def test_within_makes_its_operator() -> None:
    transform = joins.within("right", ON, after="1 hour", how="left", prefix="c_")
    made = Within(PAIRING, ("at", "since"), timedelta(), timedelta(hours=1), "left", "c_")
    assert (transform.name, transform.right, transform.pairing) == ("within", "right", PAIRING)
    assert transform.build(ORDERS, CUSTOMERS) == made


def test_as_of_makes_its_operator() -> None:
    made = joins.as_of("table", ON, at="placed", keep="1 day").build(ORDERS, CUSTOMERS)
    assert made == AsOf(PAIRING, ("at", "since"), "placed", "left", timedelta(days=1))
    made = joins.as_of("table", ON, late="correct", keep="1 day", key="id, at").build(ORDERS, CUSTOMERS)
    assert made.identity == ("id", "at")


def test_lookup_makes_its_operator_and_needs_no_time() -> None:
    timeless = Side(ORDERS.schema, None)
    assert joins.lookup("table", ON, how="inner").build(timeless, CUSTOMERS) == Lookup(PAIRING, "inner")


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda: joins.within("r", ON, how="outer"), "within does not know how='outer'"),
        (lambda: joins.within("r", ON, after="an hour"), 'invalid interval "an hour"'),
        (lambda: joins.within("r", ON, after=timedelta(seconds=-1)), "not a positive length of time"),
        (lambda: joins.within("r", []), "within has no columns to go by"),
        (lambda: joins.as_of("r", ON, how="full"), "as_of does not know how='full'"),
        (lambda: joins.as_of("r", ON, late="side"), "as_of does not know late='side'"),
        (lambda: joins.as_of("r", ON, late="correct", keep="1 day"), "nothing tells its events apart"),
        (lambda: joins.as_of("r", ON, late="correct", key="id"), "cannot correct what has come out for ever"),
        (
            lambda: joins.as_of("r", ON, late="correct", key="id", keep="1 day", how="inner"),
            'cannot correct what has come out with how="inner"',
        ),
        (lambda: joins.lookup("r", ON, how="anti"), "lookup does not know how='anti'"),
    ],
)
def test_what_cannot_be_is_refused_at_once(made: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        made()


@pytest.mark.parametrize("transform", [joins.within("r", ON), joins.as_of("r", ON)])
def test_a_side_without_an_event_time_is_refused(transform: Any) -> None:
    with pytest.raises(UsageError, match="its left rows have no event time"):
        transform.build(Side(ORDERS.schema, None), CUSTOMERS)
    with pytest.raises(UsageError, match="its right rows have no event time"):
        transform.build(ORDERS, Side(CUSTOMERS.schema, None, ("id",)))


@pytest.mark.parametrize(
    "transform", [joins.as_of("t", {"placed": "since"}), joins.lookup("t", {"placed": "since"})]
)
def test_a_table_is_joined_by_its_key(transform: Any) -> None:
    with pytest.raises(UsageError, match="goes by the key of a table, and since is not it"):
        transform.build(ORDERS, CUSTOMERS)


def test_a_misspelt_column_of_the_table_is_told() -> None:
    with pytest.raises(UsageError) as caught:
        joins.as_of("t", {"customer": "idd"}).build(ORDERS, CUSTOMERS)
    assert caught.value.hint == 'did you mean "id"?'
