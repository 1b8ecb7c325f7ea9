"""The first and the last entries of first numbers, against all that there are."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from headwater.operators.event_time import FOREVER, NEVER
from headwater.operators.groups import Numbers
from headwater.operators.memory.edges import Edge
from headwater.operators.memory.entries import Entries
from headwater.operators.memory.sorted_runs import SortedRuns
from soaking import examples
from unit.operators.stepping import SPILLED, TablesInMemory

SCHEMA = pa.schema([("n", pa.int64())])
MINOR = st.sampled_from([NEVER, -2, -1, 0, 1, 2, 3, FOREVER])
PAIRS = st.lists(st.tuples(st.integers(0, 4), MINOR), max_size=15)


def summed(rows: pa.Table, groups: Numbers, count: int) -> pa.Table:
    sums = np.bincount(groups, rows.column(0).to_numpy(), count).astype(np.int64)
    return pa.table([sums], schema=SCHEMA)


@examples(200)
@given(st.lists(st.tuples(PAIRS, st.booleans()), max_size=5), st.integers(1, 3), st.booleans(), MINOR)
def test_what_comes_first_is_complete_as_far_as_it_is_told(
    steps: list[tuple[list[tuple[int, int]], bool]], count: int, last: bool, bound: int
) -> None:
    runs, files, counts = (
        SortedRuns(SCHEMA.empty_table(), summed),
        TablesInMemory(),
        dict[tuple[int, int], int](),
    )
    for pairs, spills in steps:
        major, minor = (np.array([pair[n] for pair in pairs], np.int64) for n in (0, 1))
        runs.add(Entries(major, minor, pa.table([np.ones(len(pairs), np.int64)], schema=SCHEMA)))
        for pair in pairs:
            counts[pair] = counts.get(pair, 0) + 1
        if spills:
            runs.save(files, SPILLED)
    asked = np.array([0, 2, 3, 7])
    found, whole = runs.edge(Edge(asked, np.full(4, bound), count, last))
    columns = (found.major.tolist(), found.minor.tolist(), found.rows.column(0).to_pylist())
    triples = list(zip(*columns, strict=True))
    for number, is_whole in zip(asked.tolist(), whole.tolist(), strict=True):
        there = sorted((pair for pair in counts if pair[0] == number), reverse=last)
        there = [pair for pair in there if (pair[1] <= bound if last else pair[1] >= bound)]
        mine = sorted((each for each in triples if each[0] == number), reverse=last)
        assert mine == [(*pair, counts[pair]) for pair in there[: len(mine)]]
        assert len(mine) == len(there) if is_whole else len(mine) >= count
