"""Any number of buckets, run as the engine runs them: the same rows, late rows and counts come out.

So they do where the number is changed between steps, as ``headwater rescale`` does.

Those of tables are in ``tables/test_join.py`` and ``tables/test_group.py``.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.operators.decide import Decide
from headwater.operators.dedup import Dedup
from headwater.operators.event_time import NEVER
from headwater.operators.joins.within import HOW, Within
from headwater.operators.latest import Latest
from headwater.operators.operator import Operator
from headwater.operators.scan import Scan
from headwater.operators.windows.hopping import Hopping
from headwater.operators.windows.session import Session
from headwater.operators.windows.sliding import Sliding
from headwater.schema import parse
from soaking import examples
from unit.operators.bucketed import SCALES, Steps, ran
from unit.operators.joins import pairs, test_as_of, test_lookup
from unit.operators.stepping import moves, table
from unit.operators.test_kept_states import Balance
from unit.operators.test_scan import STATE, trail
from unit.operators.windows.windowed import BY, windowing

COUNTS = (2, 5, 64)


def length(micros: int) -> timedelta:
    return timedelta(microseconds=micros)


def check(operator: Operator[Any], steps: Steps) -> None:
    alone = ran(operator, steps, [1])
    for count in COUNTS:
        assert ran(operator, steps, [count], forgetful=count == COUNTS[0]) == alone


def check_rescaled(operator: Operator[Any], steps: Steps, counts: list[int]) -> None:
    assert ran(operator, steps, counts) == ran(operator, steps, [1])


HOPS = length(12), length(4), length(1)
OPERATORS: dict[str, Operator[Any]] = {
    "dedup": Dedup(on=BY, within=length(5), event_time="at"),
    "latest": Latest(by=BY, event_time="at"),
    "scan": Scan(trail, BY, "at", STATE, vectorised=False),
    "hopping": Hopping(windowing("hopping", "correct", 6), *HOPS),
    "early hopping": Hopping(windowing("hopping"), *HOPS, every=length(3)),
    "compared hopping": Hopping(windowing("hopping"), *HOPS, compare=length(8)),
    "hopping of all": Hopping(windowing("hopping", by=()), *HOPS),
    "sliding": Sliding(windowing("sliding", "correct", 6), length(7)),
    "early sliding": Sliding(windowing("sliding"), length(7), every=2),
    "session": Session(windowing("session", "correct", 6), length(4)),
    "early session": Session(windowing("session"), length(4), every=2),
    "session shown by time": Session(windowing("session"), length(4), every=length(3)),
}


@pytest.mark.parametrize("name", OPERATORS)
@examples(4)
@given(plan=moves())
def test_an_operator_over_one_input(name: str, plan: list[Any]) -> None:
    check(OPERATORS[name], [(table(move.rows), move.clock) for move in plan])


@pytest.mark.parametrize("name", OPERATORS)
@examples(10)
@given(plan=moves(), counts=SCALES)
def test_an_operator_over_one_input_that_is_rescaled(name: str, plan: list[Any], counts: list[int]) -> None:
    check_rescaled(OPERATORS[name], [(table(move.rows), move.clock) for move in plan], counts)


COMMANDS = parse("key STRING, request_id STRING, amount BIGINT, partition INT, offset BIGINT")
REQUESTS = st.lists(
    st.lists(
        st.tuples(st.sampled_from("abcdef"), st.sampled_from([None, "1", "2"]), st.integers(0, 9)), max_size=6
    ),
    max_size=6,
)


@examples(15)
@given(plan=REQUESTS, counts=SCALES)
def test_decided_commands_of_a_node_that_is_rescaled(plan: list[Any], counts: list[int]) -> None:
    steps, offset = [], 0
    for requests in plan:
        rows = [(*request, 0, offset + place) for place, request in enumerate(requests)]
        offset += len(rows)
        steps.append(
            (
                pa.Table.from_pylist([dict(zip(COMMANDS.names, row, strict=True)) for row in rows], COMMANDS),
                NEVER,
            )
        )
    check_rescaled(Decide(Balance()), steps, counts)


def twins(field: pairs.Field, plan: list[pairs.Twin]) -> Steps:
    return [(field.sent(twin.left, twin.right), twin.clock) for twin in plan]


@pytest.mark.parametrize("how", HOW)
@examples(4)
@given(plan=pairs.ANY)
def test_a_join_within_a_time(how: str, plan: list[pairs.Twin]) -> None:
    operator = Within(pairs.ON, ("at", "at"), length(2), length(5), how, pairs.PREFIX)
    check(operator, twins(pairs.FIELD, plan))


@pytest.mark.parametrize("how", HOW)
@examples(10)
@given(plan=pairs.ANY, counts=SCALES)
def test_a_join_within_a_time_that_is_rescaled(how: str, plan: list[pairs.Twin], counts: list[int]) -> None:
    operator = Within(pairs.ON, ("at", "at"), length(2), length(5), how, pairs.PREFIX)
    check_rescaled(operator, twins(pairs.FIELD, plan), counts)


@pytest.mark.parametrize("way", test_as_of.WAYS)
@examples(4)
@given(plan=test_as_of.ANY)
def test_a_join_as_of_a_time(way: str, plan: list[pairs.Twin]) -> None:
    check(test_as_of.WAYS[way], twins(test_as_of.FIELD, plan))


@pytest.mark.parametrize("way", test_as_of.WAYS)
@examples(10)
@given(plan=test_as_of.ANY, counts=SCALES)
def test_a_join_as_of_a_time_that_is_rescaled(way: str, plan: list[pairs.Twin], counts: list[int]) -> None:
    check_rescaled(test_as_of.WAYS[way], twins(test_as_of.FIELD, plan), counts)


@examples(10)
@given(plan=test_lookup.ANY, counts=SCALES)
def test_a_lookup_that_is_rescaled(plan: list[pairs.Twin], counts: list[int]) -> None:
    check_rescaled(test_lookup.LOOKUP, twins(test_lookup.FIELD, plan), counts)


@examples(4)
@given(plan=test_lookup.ANY)
def test_a_lookup(plan: list[pairs.Twin]) -> None:
    check(test_lookup.LOOKUP, twins(test_lookup.FIELD, plan))
