"""Windows on their way out, against a sum over their panes and a count of publications."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from headwater import agg
from headwater.operators.groups import Numbers
from headwater.operators.memory.entries import Entries
from headwater.operators.memory.publications import PublicationCounts
from headwater.operators.memory.sorted_runs import SortedRuns
from headwater.operators.windows.grid import Grid
from headwater.operators.windows.publishing import (
    Publishable,
    counts,
    crowded,
    merge_panes,
    publish,
    ready,
)
from headwater.operators.windows.windowing import Windowing
from headwater.schema import parse
from soaking import examples
from unit.operators.stepping import listed

SCHEMA = parse("k STRING, v BIGINT, at TIMESTAMP")
COUNTS = Windowing("hopping", ("k",), "at", (("n", agg.count()),))
STATE = COUNTS.state_schema(SCHEMA)
GRID = Grid(size=6, hop=2, width=2, offset=1)
PANES = st.dictionaries(st.tuples(st.integers(-5, 12), st.integers(0, 3)), st.integers(1, 9))
CELLS = st.sets(st.tuples(st.integers(-8, 14), st.integers(0, 4)))
Cell = tuple[int, int]


def entries(parts: dict[Cell, int]) -> Entries:
    lead, then = np.array(sorted(parts), np.int64).reshape(-1, 2).T
    columns = [[f"k{key}" for key in then.tolist()], [parts[cell] for cell in sorted(parts)]]
    return Entries(lead, then, pa.table(columns, schema=STATE))


def on_grid(place: int) -> int:
    return place * GRID.width + GRID.offset


def summed(panes: dict[Cell, int], cells: list[Cell]) -> dict[Cell, int]:
    """Return what is in each window that has any pane."""
    sums: Counter[Cell] = Counter()
    for start, key in cells:
        sums[start, key] += sum(
            n for (at, mine), n in panes.items() if mine == key and start <= at < start + GRID.size
        )
    return {cell: n for cell, n in sums.items() if n}


def told(found: Entries) -> dict[Cell, int]:
    cells = zip(found.major.tolist(), found.minor.tolist(), strict=True)
    return dict(zip(cells, counts(found.rows).tolist(), strict=True))


@examples(60)
@given(PANES, CELLS)
def test_windows_are_merged_from_their_panes_and_those_without_any_are_left_out(
    panes: dict[Cell, int], cells: set[Cell]
) -> None:
    held = {(on_grid(place), key): n for (place, key), n in panes.items()}
    asked = sorted((on_grid(place), key) for place, key in cells)
    starts, keys = np.array(asked, np.int64).reshape(-1, 2).T
    partials = SortedRuns(STATE.empty_table(), COUNTS.merge)
    partials.add(entries(held))
    expected = summed(held, asked)
    assert told(ready(entries(held), starts, keys, GRID.size, COUNTS.merge)) == expected
    assert told(merge_panes(partials, starts, keys, GRID, COUNTS.merge)) == expected


def test_windows_that_overlap_among_many_keys_have_each_pane_once() -> None:
    held = {(on_grid(place), key): 1 for place in range(50) for key in range(20)}
    partials = SortedRuns(STATE.empty_table(), COUNTS.merge)
    partials.add(entries(held))
    asked = [(on_grid(0), 3), (on_grid(1), 3), (on_grid(2), 7)]
    starts, keys = np.array(asked).T
    assert told(merge_panes(partials, starts, keys, GRID, COUNTS.merge)) == dict.fromkeys(asked, 3)


@examples(30)
@given(st.lists(st.tuples(PANES, PANES), max_size=4))
def test_of_two_results_of_one_window_the_later_has_the_higher_revision(
    steps: list[tuple[dict[Cell, int], dict[Cell, int]]],
) -> None:
    publications, seen = PublicationCounts(counting=True), Counter[Cell]()
    for early, ended in steps:
        early = {cell: n for cell, n in early.items() if cell not in ended}
        found = [Publishable(entries(ended), True), Publishable(entries(early), False)]
        out = publish(COUNTS, publications, found, GRID.size, COUNTS.output_schema(SCHEMA))
        rows = [
            {"k": f"k{key}", "window_start": at, "window_end": at + 6, "n": n, "revision": seen[at, key]}
            | {"complete": (at, key) in ended}
            for (at, key), n in sorted((early | ended).items())
        ]
        assert listed(out) == rows
        seen.update([*early, *ended])


def test_nothing_to_publish_is_no_rows_of_the_same_columns() -> None:
    publications, schema = PublicationCounts(counting=True), COUNTS.output_schema(SCHEMA)
    out = publish(COUNTS, publications, [Publishable(entries({}), True)], GRID.size, schema)
    assert out.equals(schema.empty_table())
    assert len(publications) == 0


def test_a_window_is_crowded_when_it_passes_a_multiple_with_new_rows() -> None:
    now: Numbers = np.array([9, 10, 11, 25, 10])
    new: Numbers = np.array([9, 1, 1, 16, 0])
    assert crowded(pa.table({"n": now}), new, 10).tolist() == [False, True, False, True, False]
