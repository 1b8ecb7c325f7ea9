"""Values of groups in order, against lists that are sorted anew."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.operators.memory.operator_memory import OperatorMemory
from headwater.operators.memory.ranked_values import CountedValues, RankedValues
from soaking import examples
from unit.operators.stepping import LOGGED, SPILLED, TablesInMemory

LONG = "a long beginning that many values have, "
VALUES: dict[Any, list[Any]] = {
    pa.int64(): [-(2**63), -3, 0, 1, 2, 3, 2**63 - 1],
    pa.string(): [
        "",
        "a",
        "a\0",
        "abcdefg",
        "abcdefgh",
        "abcdefgi",
        LONG,
        LONG + "1",
        LONG + "2",
        LONG + "3 and more",
    ],
    pa.binary(): [b"", b"\xff" * 7, b"\xff" * 8, b"\xff" * 21, b"\xff" * 21 + b"\0"],
}
Held = list[Counter[Any]]


def counted(kind: Any, step: dict[tuple[int, int], int], held: Held) -> CountedValues:
    """Changes of a step, none of which takes out what is not there; they are made in ``held`` too."""
    changes = {}
    for (group, number), count in step.items():
        value = VALUES[kind][number % len(VALUES[kind])]
        count = max(count, -held[group][value])
        if count and (group, value) not in changes:
            changes[group, value] = count
            held[group][value] += count
    groups = np.array([group for group, _ in changes], np.int64)
    values = pa.array([value for _, value in changes], kind)
    return CountedValues(groups, values, np.array(list(changes.values()), np.int64))


def reopened(kind: Any, ranked: RankedValues, files: TablesInMemory, limits: Any) -> RankedValues:
    saved = OperatorMemory({"values": ranked.runs}, {"nodes": (ranked, "given")}).save(files, limits)
    again = RankedValues(kind)
    OperatorMemory({"values": again.runs}, {"nodes": (again, "given")}).open(saved, files)
    return again


def edge(kind: Any, ranked: RankedValues, held: Held, need: int, last: bool) -> list[list[Any]]:
    groups = [group for group, values in enumerate(held) if values.total()]
    bounds = [(max if last else min)(+held[group]) for group in groups]
    of, found = ranked.edge(np.array(groups, np.int64), pa.array(bounds, kind), need, last)
    assert found.type == kind
    lists: list[list[Any]] = [[] for _ in held]
    for place, value in zip(of.tolist(), found.to_pylist(), strict=True):
        lists[groups[place]].append(value)
    return lists


STEP = st.tuples(
    st.dictionaries(st.tuples(st.integers(0, 2), st.integers(0, 9)), st.sampled_from([-9, -1, 1, 2])),
    st.sampled_from([None, LOGGED, SPILLED]),
)


@pytest.mark.parametrize("kind", VALUES, ids=str)
@examples(60)
@given(steps=st.lists(STEP, max_size=10), need=st.integers(1, 4))
def test_the_outermost_values_of_groups_are_those_that_are_there(kind: Any, steps: Any, need: int) -> None:
    ranked, files, held = RankedValues(kind), TablesInMemory(), [Counter[Any]() for _ in range(3)]
    for step, limits in steps:
        ranked.change(counted(kind, step, held))
        ranked = ranked if limits is None else reopened(kind, ranked, files, limits)
        for last in (False, True):
            wanted = [sorted(values.elements(), reverse=last)[:need] for values in held]
            assert edge(kind, ranked, held, need, last) == wanted


@pytest.mark.parametrize("kind", [pa.int64(), pa.string()], ids=str)
def test_the_next_value_is_found_behind_many_that_have_left(kind: Any) -> None:
    ranked, files = RankedValues(kind), TablesInMemory()
    column = pa.array(range(2000)).cast(kind)
    zeros = np.zeros(2000, np.int64)
    ranked.change(CountedValues(zeros, column, zeros + 1))
    ranked = reopened(kind, ranked, files, SPILLED)
    left = np.flatnonzero([value not in (3, 1995) for value in range(2000)])
    ranked.change(CountedValues(zeros[left], column.take(pa.array(left)), zeros[left] - 1))
    bounds = pa.array(["0" if kind == pa.string() else 0], kind)
    of, found = ranked.edge(np.array([0]), bounds, 2, False)
    assert of.tolist() == [0, 0]
    assert found.cast(pa.int64()).to_pylist() == ([3, 1995] if kind == pa.int64() else [1995, 3])


def test_nothing_is_held_of_values_that_have_left() -> None:
    ranked, files = RankedValues(pa.string()), TablesInMemory()
    column, zeros = pa.array([LONG, LONG + "1", "b"]), np.zeros(3, np.int64)
    for _ in range(6):
        ranked.change(CountedValues(zeros, column, zeros + 1))
        ranked.change(CountedValues(zeros, column, zeros - 1))
        ranked = reopened(pa.string(), ranked, files, SPILLED)
    assert len(ranked.runs) == 0
