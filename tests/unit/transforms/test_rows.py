"""What users write on rows of one stream, and what they are told when it cannot be meant."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from headwater.errors import UsageError
from headwater.operators.dedup import Dedup
from headwater.operators.latest import Latest
from headwater.operators.scan import Scan
from headwater.operators.spec import Side, setting_aside
from headwater.schema import parse
from headwater.transforms.rows import dedup, latest, scan
from headwater.transforms.sample import Sample, sample

ORDERS = Side(parse("shop STRING, id BIGINT, at TIMESTAMP"), "at")
STATE = parse("total BIGINT")


def add(state: dict[str, Any] | None, event: dict[str, Any]) -> dict[str, Any]:
    return {"total": (state["total"] if state else 0) + event["id"]}


def orders(*rows: tuple[Any, ...]) -> Sample:
    return sample(ORDERS.schema, *rows, event_time="at")


def test_each_makes_its_operator_of_the_event_time_of_the_rows() -> None:
    assert dedup("shop, id", "1 hour").build(ORDERS) == Dedup(("shop", "id"), timedelta(hours=1), "at")
    assert latest(["shop"]).build(ORDERS) == Latest(("shop",), "at")
    assert scan(add, "shop", "total BIGINT").build(ORDERS) == Scan(add, ("shop",), "at", STATE)
    assert scan(add, "shop", STATE, vectorised=True).build(ORDERS).vectorised


def test_a_scan_sets_events_aside_where_that_is_asked_for() -> None:
    before = setting_aside.set(True)
    try:
        assert scan(add, "shop", STATE).build(ORDERS).tolerant
    finally:
        setting_aside.reset(before)
    assert not scan(add, "shop", STATE).build(ORDERS).tolerant


@pytest.mark.parametrize("transform", [dedup("id", "1 hour"), latest("id"), scan(add, "id", STATE)])
def test_rows_without_an_event_time_are_refused(transform: Any) -> None:
    message = f"{transform.name} needs to know when events happened, and these rows have no event time"
    with pytest.raises(UsageError, match=message) as refused:
        transform.build(Side(ORDERS.schema, None))
    assert "declare event_time=" in str(refused.value)


def test_what_cannot_be_meant_is_refused_when_it_is_called() -> None:
    with pytest.raises(UsageError, match='invalid interval "an hour"'):
        dedup("id", "an hour")
    with pytest.raises(UsageError):
        dedup("id", timedelta(hours=-1))
    with pytest.raises(Exception, match="NUMBR"):
        scan(add, "id", "total NUMBR")


@pytest.mark.parametrize("transform", [dedup("shp", "1 hour"), latest("shp"), scan(add, "shp", STATE)])
def test_a_misspelt_column_is_refused_when_rows_come(transform: Any) -> None:
    with pytest.raises(UsageError, match=f'{transform.name} finds no column "shp"'):
        orders().transform(transform)


def test_they_follow_each_other() -> None:
    rows = orders(("oslo", 1, "12:00"), ("oslo", 1, "12:01"), ("oslo", 2, "12:02"), ("rome", 4, "12:00"))
    out = rows.transform(dedup("shop, id", "1 hour")).transform(scan(add, "shop", STATE))
    totals = [(row["shop"], row["total"]) for row in out.transform(latest("shop")).rows.to_pylist()]
    assert sorted(totals) == [("oslo", 3), ("rome", 4)]
