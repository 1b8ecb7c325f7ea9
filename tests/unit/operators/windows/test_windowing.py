"""What all windows have in common, each part by itself."""

from __future__ import annotations

import math
from datetime import timedelta

import numpy as np
import pyarrow as pa
import pytest

from headwater import agg
from headwater.errors import UsageError
from headwater.operators.event_time import FOREVER, NEVER
from headwater.operators.memory.key_hash import hashes
from headwater.operators.windows.windowing import LONGEST_AGO, Windowing, bounded, grouped, timed
from headwater.schema import parse
from unit.operators.stepping import listed, table

SCHEMA = parse("k STRING, x DOUBLE, v BIGINT, at TIMESTAMP")
SUMS = Windowing("tumbling", ("k",), "at", (("n", agg.count()), ("total", agg.sum("v"))))


def rows(*given: tuple[str | None, int]) -> pa.Table:
    return table([{"k": k, "x": 0.0, "v": v, "at": v} for k, v in given], SCHEMA)


def test_rows_out_are_the_key_the_edges_the_aggregates_and_what_is_told() -> None:
    names = ["k", "window_start", "window_end", "n", "total", "revision", "complete"]
    assert SUMS.output_schema(SCHEMA).names == names
    retracting = SUMS.output_schema(SCHEMA, retracts=True)
    assert retracting.names == [*names, "_deleted"]
    assert retracting.field("n").nullable
    assert not SUMS.output_schema(SCHEMA).field("n").nullable


def test_names_that_are_taken_are_refused() -> None:
    twice = Windowing("tumbling", ("k",), "at", (("k", agg.count()),))
    with pytest.raises(UsageError, match='tumbling has two columns "k"'):
        twice.output_schema(SCHEMA)
    late = SCHEMA.append(pa.field("late_by", pa.int64()))
    with pytest.raises(UsageError, match='tumbling cannot take rows with a column "late_by"'):
        SUMS.output_schema(late)


def test_partial_results_of_parts_are_merged_into_that_of_all_rows() -> None:
    every = rows(("a", 1), ("b", 2), ("a", 3), (None, 4))
    made = []
    for part in (every.slice(0, 2), every.slice(2)):
        groups = grouped(part, SUMS.by)
        made.append(SUMS.partials(part, part["v"].to_numpy(), groups.of, groups.first))
    both = pa.concat_tables(made).combine_chunks()
    merged = SUMS.merge(both, np.array([0, 1, 0, 2]), 3)
    edges = np.zeros(3, np.int64)
    told = SUMS.results(merged, edges, edges + 10, [])
    assert [column.to_pylist() for column in told[:1] + told[3:]] == [["a", "b", None], [2, 1, 1], [4, 2, 4]]
    assert SUMS.named_results(merged, ["total"])["total"].to_pylist() == [4, 2, 4]


def test_equal_keys_are_written_in_one_way() -> None:
    by_float = Windowing("tumbling", ("x",), "at", (("n", agg.count()),))
    some = table([{"k": "a", "x": x, "v": 1, "at": 1} for x in (-0.0, -math.nan, None)], SCHEMA)
    groups = grouped(some, ("x",))
    keys = by_float.partials(some, np.ones(3, np.int64), groups.of, groups.first)["x"].to_pylist()
    assert repr(keys) == "[0.0, nan, None]"
    assert np.array(keys[1]).tobytes() == np.array(math.nan).tobytes()


def test_a_late_row_is_told_how_late_it_is_and_for_which_window() -> None:
    at, starts = np.array([3, NEVER]), np.array([0, NEVER])
    late = SUMS.late_rows(rows(("a", 3), ("b", 0)), at, starts, 25)
    assert late is not None
    told = [(row["late_by"], row["late_window_start"]) for row in listed(late)]
    assert told == [(22, 0), (None, None)]
    assert SUMS.late_rows(rows(), at[:0], starts[:0], 25) is None
    assert late.schema == SUMS.late_schema(SCHEMA)


def test_nothing_is_corrected_any_more_once_the_clock_is_as_far_ahead_as_is_kept() -> None:
    kept = Windowing("tumbling", (), "at", (), "correct", timedelta(microseconds=30))
    assert (
        kept.correction_horizon(100),
        kept.correction_horizon(NEVER),
        kept.correction_horizon(NEVER + 5),
    ) == (70, NEVER, NEVER)
    assert (kept.corrects, SUMS.corrects) == (True, False)
    assert SUMS.correction_horizon(100) == 100


def test_only_what_is_estimated_may_differ_where_rows_came_in_other_steps() -> None:
    rough = Windowing("tumbling", (), "at", (("n", agg.count()), ("mid", agg.quantile("v", 0.5))))
    assert rough.uncompared_columns == ("revision", "mid", "mid_low", "mid_high")
    assert SUMS.uncompared_columns == ("revision",)


def test_rows_without_a_key_are_one_group_and_no_rows_are_none() -> None:
    groups = grouped(rows(("a", 1), ("b", 2)), ())
    assert (groups.of.tolist(), groups.first.tolist(), groups.keys) == ([0, 0], [0], hashes([], 1))
    assert len(grouped(rows(), ()).first) == 0


def test_times_so_far_away_that_no_window_can_be_written_are_none() -> None:
    times = np.array([NEVER, -LONGEST_AGO, -LONGEST_AGO + 1, 0, LONGEST_AGO - 1, LONGEST_AGO, FOREVER])
    assert timed(times).tolist() == [False, False, True, True, True, False, False]
    assert [bounded(t) for t in (NEVER - 1, 5, FOREVER + 1)] == [NEVER, 5, FOREVER]
