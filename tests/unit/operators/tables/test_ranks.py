"""The least and the greatest values of groups, against lists that are sorted anew."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.operators.memory.edges import Edge
from headwater.operators.memory.operator_memory import OperatorMemory
from headwater.operators.tables.ranks import Ranks
from headwater.operators.tables.tallies import Ends
from soaking import examples
from unit.operators.stepping import SPILLED, TablesInMemory, rank
from unit.operators.tables.tallying import Tallied

VALUES: dict[Any, list[Any]] = {
    pa.float64(): [None, -math.inf, -1.5, -0.0, 0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, math.inf, math.nan],
    pa.string(): [None, "", *(f"a value with {number}" for number in range(8, 16)), "b"],
}
GROUPS = 3
STEP = st.tuples(
    st.lists(st.tuples(st.integers(0, GROUPS - 1), st.integers(0, 12)), max_size=12),
    st.integers(0, 12),
    st.booleans(),
)
Rows = list[tuple[int, Any]]


def values(rows: Rows) -> list[list[Any]]:
    """What is there in each group, in order."""
    there = [[value for of, value in rows if of == group and value is not None] for group in range(GROUPS)]
    return [sorted(some, key=lambda value: rank({"v": value})) for some in there]


def reopened(tallied: Tallied, kind: Any, files: TablesInMemory) -> None:
    memory = OperatorMemory(tallied.tally.containers(), tallied.tally.counters())
    saved, tallied.tally = memory.save(files, SPILLED), Ranks(kind, tallied.tally._ends)
    OperatorMemory(tallied.tally.containers(), tallied.tally.counters()).open(saved, files)


@pytest.mark.parametrize("kind", VALUES, ids=str)
@examples(100)
@given(steps=st.lists(STEP, max_size=12), k=st.integers(1, 3))
def test_the_ends_of_groups_depend_on_the_rows_that_are_there_now(kind: Any, steps: Any, k: int) -> None:
    tallied, rows, files = Tallied(Ranks(kind, Ends(1, k)), GROUPS), Rows(), TablesInMemory()
    for places, leave, restart in steps:
        new = [(group, VALUES[kind][place % len(VALUES[kind])]) for group, place in places]
        gone = sorted(rows, key=lambda row: rank({"v": row[1]}))[-leave:] if leave else []  # from the top
        tallied.change(new, kind, 1)
        tallied.change(gone, kind, -1)
        left = Counter(map(repr, gone))
        rows = [row for row in [*rows, *new] if not _taken(left, row)]
        if restart:
            reopened(tallied, kind, files)
        there, ranks, columns = values(rows), tallied.tally, tallied.columns
        assert repr(ranks.least(columns).to_pylist()) == repr([some[0] if some else None for some in there])
        assert repr(ranks.most(columns).to_pylist()) == repr([some[-1] if some else None for some in there])
        assert repr(ranks.greatest(columns, k).to_pylist()) == repr([some[::-1][:k] for some in there])


def _taken(left: Counter[str], row: tuple[int, Any]) -> bool:
    left[repr(row)] -= 1
    return left[repr(row)] >= 0


def test_the_container_is_looked_into_only_when_the_ends_have_run_out(monkeypatch: Any) -> None:
    tallied, asked = Tallied(Ranks(pa.int64(), Ends(1, 0)), GROUPS), list[Edge]()
    runs = tallied.tally.containers()["values"]
    edge = runs.edge
    monkeypatch.setattr(runs, "edge", lambda edge_asked: asked.append(edge_asked) or edge(edge_asked))
    tallied.change([(0, value) for value in range(100)], pa.int64(), 1)
    tallied.change([(0, value) for value in (50, 0, 99)], pa.int64(), -1)
    tallied.change([(0, -1), (0, 200)], pa.int64(), 1)
    assert not asked
    tallied.change([(0, value) for value in (-1, *range(1, 40))], pa.int64(), -1)
    assert asked
    assert tallied.tally.least(tallied.columns).to_pylist() == [40, None, None]


def test_nothing_is_held_of_groups_that_all_rows_have_left() -> None:
    tallied, files = Tallied(Ranks(pa.string(), Ends(1, 1)), GROUPS), TablesInMemory()
    rows: Rows = [(0, "a"), (1, "a"), (1, None), (2, "a longer one"), (2, "a longer two")]
    tallied.change(rows, pa.string(), 1)
    tallied.change(rows[::-1], pa.string(), -1)
    reopened(tallied, pa.string(), files)
    assert len(tallied.tally.containers()["values"]) == 0
    assert [column.to_pylist() for column in tallied.columns] == [[0, 0, 0], [[], [], []], [[], [], []]]
