"""How an operator is used on rows in memory, of one input and of two."""

from __future__ import annotations

from typing import Any

import pytest

from headwater.errors import UsageError
from headwater.operators.joins.lookup import Lookup
from headwater.operators.latest import Latest
from headwater.operators.pairing import Pairing
from headwater.operators.spec import OperatorSpec, Side
from headwater.transforms.sample import Sample, sample
from headwater.transforms.transform import Transform

ORDERS = sample(
    "id BIGINT, who STRING, at TIMESTAMP", (1, "ada", "12:00"), (1, "bob", "12:01"), event_time="at"
)
PEOPLE = sample("who STRING, town STRING", ("bob", "Oslo"), key="who")
ON = Pairing((("who", "who"),))


def test_a_call_with_rows_gives_what_the_operator_makes_of_them() -> None:
    seen: list[Side] = []

    def build(rows: Side) -> Latest:
        seen.append(rows)
        return Latest(("id",), "at")

    out = ORDERS.transform(Transform("latest", build))
    assert isinstance(out, Sample)
    assert out.rows["who"].to_pylist() == ["bob"]
    assert out.event_time == "at"
    assert seen == [Side(ORDERS.rows.schema, "at")]


def test_an_operator_over_two_inputs_sees_both() -> None:
    seen: list[Side] = []

    def build(*sides: Side) -> Lookup:
        seen.extend(sides)
        return Lookup(ON, "left")

    out = ORDERS.transform(Transform("lookup", build, right=PEOPLE, pairing=ON))
    assert [side.table for side in seen] == [(), ("who",)]
    assert {row["who"]: row["town"] for row in out.rows.to_pylist()} == {"ada": None, "bob": "Oslo"}


def test_it_is_a_declaration_that_can_be_called() -> None:
    build: Any = Latest
    transform = Transform("latest", build)
    assert isinstance(transform, OperatorSpec)
    assert callable(transform)
    assert transform == Transform("latest", build)


def test_what_the_operator_refuses_is_refused_by_the_call() -> None:
    transform = Transform("latest", lambda rows: Latest(("idd",), "at"))
    with pytest.raises(UsageError, match='latest finds no column "idd"'):
        transform(ORDERS)
