"""Which types aggregates take, and what they read of groups whose rows come and go."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.errors import UsageError
from headwater.operators.tables import retracting
from headwater.operators.tables.retracting import Retractable
from soaking import examples
from unit.operators.tables.tallying import Tallied

ALL: list[Retractable] = [
    retracting.count("v"),
    retracting.sum("v"),
    retracting.mean("v"),
    retracting.min("v"),
    retracting.max("v"),
    retracting.greatest("v", 3),
]
NUMBERS = st.lists(st.none() | st.integers(-9, 9), max_size=10)


def by_hand(values: list[int]) -> list[Any]:
    if not values:
        return [0, None, None, None, None, []]
    total, ordered = sum(values), sorted(values)
    return [len(values), total, total / len(values), ordered[0], ordered[-1], ordered[::-1][:3]]


@examples(40)
@given(NUMBERS, NUMBERS)
def test_what_is_read_depends_on_the_rows_that_are_there_now(
    stay: list[int | None], leave: list[int | None]
) -> None:
    told = []
    for aggregate in ALL:
        tally = Tallied(aggregate.tally(pa.int64(), aggregate.ends), 1)
        for some, sign in ((leave, 1), (stay, 1), (leave[::-1], -1)):
            tally.change([(0, value) for value in some], pa.int64(), sign)
        read = aggregate.read(tally.tally, tally.columns)
        assert read.type == aggregate.result(pa.int64())
        told += read.to_pylist()
    assert told == by_hand([value for value in stay if value is not None])


@pytest.mark.parametrize(
    ("kind", "total", "least"),
    [
        (pa.int16(), pa.int64(), pa.int16()),
        (pa.float32(), pa.float64(), pa.float32()),
        (pa.decimal128(9, 2), pa.decimal128(19, 2), pa.decimal128(9, 2)),
        (pa.decimal128(30, 2), pa.decimal128(38, 2), pa.decimal128(30, 2)),
        (pa.string(), None, pa.string()),
        (pa.list_(pa.int8()), None, None),
    ],
    ids=str,
)
def test_the_type_of_a_result_follows_from_that_of_the_values(kind: Any, total: Any, least: Any) -> None:
    assert retracting.sum("v").type(kind) == total
    assert retracting.mean("v").type(kind) == (None if total is None else pa.float64())
    assert retracting.max("v").type(kind) == least
    assert retracting.greatest("v", 2).type(kind) == (None if least is None else pa.list_(least))
    assert retracting.count("v").type(kind) == pa.int64()


def test_a_type_that_is_not_taken_is_refused_by_the_name_users_know() -> None:
    for aggregate in (retracting.sum("v"), retracting.mean("v")):
        with pytest.raises(UsageError, match=rf'{aggregate.name}\("v"\) cannot take values of type string'):
            aggregate.result(pa.string())
    with pytest.raises(UsageError, match=r'greatest\("v"\) cannot take values of type list'):
        retracting.greatest("v", 2).result(pa.list_(pa.int8()))


def test_aggregates_that_need_the_same_share_a_tally() -> None:
    assert retracting.sum("v").tally is retracting.mean("v").tally
    assert retracting.min("v").tally is retracting.greatest("v", 2).tally
    assert retracting.min("v").ends | retracting.greatest("v", 2).ends | retracting.max("v").ends == (1, 2)


def test_the_greatest_of_no_values_are_refused() -> None:
    with pytest.raises(UsageError, match="greatest of 0 values has none"):
        retracting.greatest("v", 0)
