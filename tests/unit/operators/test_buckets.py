"""Any number of buckets, run as the engine runs them: the same rows, late rows and counts come out.

Those of tables are in ``tables/test_join.py`` and ``tables/test_group.py``.
"""

from __future__ import annotations

import tempfile
import uuid
from collections import Counter
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given

from headwater.engine.files.local_files import LocalFiles
from headwater.engine.stage.bucket_step import StepContext, step_in_driver
from headwater.engine.state.bucket import BucketMeta
from headwater.operators.dedup import Dedup
from headwater.operators.event_time import NEVER
from headwater.operators.joins.within import HOW, Within
from headwater.operators.latest import Latest
from headwater.operators.operator import Operator
from headwater.operators.scan import Scan
from headwater.operators.windows.hopping import Hopping
from headwater.operators.windows.session import Session
from headwater.operators.windows.sliding import Sliding
from soaking import examples
from unit.operators.joins import pairs, test_as_of, test_lookup
from unit.operators.stepping import listed, moves, table, texts
from unit.operators.test_scan import STATE, trail
from unit.operators.windows.windowed import BY, windowing

Steps = list[tuple[pa.Table, int]]
"""Rows, and the clock after them."""
COUNTS = (2, 5, 64)


def length(micros: int) -> timedelta:
    return timedelta(microseconds=micros)


@dataclass(frozen=True)
class Outcome:
    """What came of steps, whatever the order of buckets."""

    out: list[Counter[str]]
    late: list[Counter[str]]
    duplicates: list[int]


def ran(operator: Operator[Any], steps: Steps, count: int, forgetful: bool = False) -> Outcome:
    """Run as the engine does: states are kept in files, and one that is forgetful reads them each time."""
    node, buckets, clock, told = uuid.uuid4().hex, {}, NEVER, Outcome([], [], [])
    with tempfile.TemporaryDirectory() as place:
        for rows, now in steps:
            node = uuid.uuid4().hex if forgetful else node  # a name under which nothing is remembered
            done = step_in_driver(
                StepContext(node, operator, rows.schema, LocalFiles(Path(place)), clock, now, buckets),
                rows,
                count,
            )
            assert sum(each.rows for each in done) == len(rows)
            told.out.append(Counter(text for each in done for out in each.out for text in texts(listed(out))))
            told.late.append(
                Counter(text for each in done for late in each.late for text in texts(listed(late)))
            )
            told.duplicates.append(sum(each.duplicates for each in done))
            after: dict[int, BucketMeta] = {each.bucket: each.meta for each in done}
            buckets, clock = {**buckets, **after}, now
    return told


def check(operator: Operator[Any], steps: Steps) -> None:
    alone = ran(operator, steps, 1)
    for count in COUNTS:
        assert ran(operator, steps, count, forgetful=count == COUNTS[0]) == alone


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
}


@pytest.mark.parametrize("name", OPERATORS)
@examples(4)
@given(plan=moves())
def test_an_operator_over_one_input(name: str, plan: list[Any]) -> None:
    check(OPERATORS[name], [(table(move.rows), move.clock) for move in plan])


def twins(field: pairs.Field, plan: list[pairs.Twin]) -> Steps:
    return [(field.sent(twin.left, twin.right), twin.clock) for twin in plan]


@pytest.mark.parametrize("how", HOW)
@examples(4)
@given(plan=pairs.ANY)
def test_a_join_within_a_time(how: str, plan: list[pairs.Twin]) -> None:
    operator = Within(pairs.ON, ("at", "at"), length(2), length(5), how, pairs.PREFIX)
    check(operator, twins(pairs.FIELD, plan))


@pytest.mark.parametrize("way", test_as_of.WAYS)
@examples(4)
@given(plan=test_as_of.ANY)
def test_a_join_as_of_a_time(way: str, plan: list[pairs.Twin]) -> None:
    check(test_as_of.WAYS[way], twins(test_as_of.FIELD, plan))


@examples(4)
@given(plan=test_lookup.ANY)
def test_a_lookup(plan: list[pairs.Twin]) -> None:
    check(test_lookup.LOOKUP, twins(test_lookup.FIELD, plan))
