"""Windows beside earlier ones, against an oracle that makes all windows of all rows and looks there."""

from __future__ import annotations

import math
import pickle
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater import agg, windows
from headwater.errors import UsageError
from headwater.operators.aggregates.aggregate import Aggregate
from headwater.operators.event_time import FOREVER, NEVER
from headwater.operators.memory.sorted_runs import SortedRuns
from headwater.operators.spec import Side
from headwater.operators.windows.hopping import Hopping
from headwater.operators.windows.windowing import Windowing
from headwater.schema import parse
from soaking import examples
from unit.operators.stepping import (
    ROWS,
    SCHEMA,
    TIMED_ROWS,
    Move,
    Played,
    Row,
    key,
    listed,
    moves,
    play,
    rank,
    table,
    texts,
)
from unit.operators.windows.window_oracle import (
    WindowOracle,
    check_any_order,
    check_output_watermark,
    woken,
)
from unit.operators.windows.windowed import Count, Sum, last, named

BY = ("k",)
IDENTITY = (*BY, "window_start")
AGGREGATES: tuple[tuple[str, Aggregate], ...] = (
    ("n", Count()),
    ("total", Sum()),
    ("top", agg.max("x")),
    ("of", agg.max("k")),
)
MICROSECOND = timedelta(microseconds=1)
Cell = tuple[int, object]


def comparing(size: int, hop: int, compare: int, offset: int = 0, keep: int = 0) -> Hopping:
    late = "correct" if keep else "drop"
    settings = Windowing("hopping", BY, "at", AGGREGATES, late, keep * MICROSECOND)
    return Hopping(
        settings, size * MICROSECOND, hop * MICROSECOND, offset * MICROSECOND, None, compare * MICROSECOND
    )


SHAPES = [
    comparing(5, 5, 5),
    comparing(4, 4, 12, 3),
    comparing(6, 2, 2),
    comparing(6, 2, 8, 1),
    comparing(7, 3, 6),
    comparing(5, 5, 5, 0, 4),
    comparing(5, 5, 10, 2, 25),
    comparing(3, 3, 3, 0, 40),
    comparing(6, 2, 4, 1, 20),
    comparing(7, 3, 9, 1, 40),
]
every_shape = pytest.mark.parametrize(
    "operator", SHAPES, ids=lambda o: "-".join(map(str, [*numbers(o), o.windowing.late]))
)


def numbers(operator: Hopping) -> tuple[int, int, int, int, int]:
    assert operator.compare is not None
    lengths = (operator.size, operator.hop, operator.compare, operator.offset, operator.windowing.keep)
    size, hop, compare, offset, keep = (each // MICROSECOND for each in lengths)
    return size, hop, compare, offset, keep


def starts(operator: Hopping, at: int) -> list[int]:
    size, hop, _, offset, _ = numbers(operator)
    return [start for start in range(-100 * hop + offset, 100 * hop, hop) if start <= at < start + size]


def is_late(operator: Hopping, row: Row, clock: int) -> bool:
    size, _, _, _, keep = numbers(operator)
    return row["at"] is None or any(start + size <= clock - keep for start in starts(operator, row["at"]))


def cells(operator: Hopping, used: list[Row]) -> dict[Cell, list[Row]]:
    """The rows of each window and key."""
    found: dict[Cell, list[Row]] = {}
    for row in used:
        for start in starts(operator, row["at"]):
            found.setdefault((start, key(row, BY)), []).append(row)
    return found


def made(rows: list[Row]) -> Row:
    known = [row["x"] for row in rows if row["x"] is not None]
    return {
        "n": len(rows),
        "total": sum(row["v"] for row in rows),
        "total_last": max(row["at"] for row in rows),
        "top": max(known, key=lambda x: rank({"x": x}), default=None),
        "of": rows[0]["k"],
    }


def against(now: Row, before: Row | None) -> Row:
    """The columns that compare, from the results of both windows."""
    out: Row = {}
    for name in ("n", "total", "top"):
        new, old = now[name], before and before[name]
        known = new is not None and old is not None
        out |= {
            f"{name}_before": old,
            f"{name}_change": new - old if known else None,
            f"{name}_ratio": float(new) / old if known and old != 0 else None,
        }
    return out


def expected(operator: Hopping, used: list[Row], clock: int) -> list[str]:
    """What is known of each window at a clock, from all rows that were not late."""
    size, _, compare, _, _ = numbers(operator)
    found, out = cells(operator, used), []
    for (start, of), rows in found.items():
        if start + size <= clock:
            edges = {"window_start": start, "window_end": start + size}
            earlier = found.get((start - compare, of))
            compared = against(made(rows), earlier and made(earlier))
            out.append(named(rows[0], BY) | edges | made(rows) | compared | {"complete": True})
    return sorted(map(repr, out))


ORACLE = WindowOracle(is_late, expected)


@every_shape
@examples(50)
@given(steps=moves())
def test_any_split_clock_and_restart_gives_what_the_oracle_gives(
    operator: Hopping, steps: list[Move]
) -> None:
    ORACLE.check(operator, steps)


@every_shape
@examples(30)
@given(steps=moves())
def test_a_step_publishes_what_has_ended_what_has_changed_and_what_is_compared_with_that(
    operator: Hopping, steps: list[Move]
) -> None:
    size, _, compare, _, _ = numbers(operator)
    used: list[Row] = []
    published: dict[Cell, int] = {}
    for move, step in zip(steps, play(operator, steps).steps, strict=True):
        new = [row for row in move.rows if not is_late(operator, row, move.clock)]
        used += new
        changed = set(cells(operator, new))
        changed |= {(start + compare, of) for start, of in changed}
        known = {cell for cell in cells(operator, used) if cell[0] + size <= move.clock}
        due = {cell for cell in known if cell not in published or cell in changed}
        out = {(row["window_start"], key(row, BY)): row["revision"] for row in listed(step.out)}
        assert len(out) == len(step.out)
        assert out == {cell: published.get(cell, 0) for cell in due}
        published |= {cell: published.get(cell, 0) + 1 for cell in due}


@every_shape
@examples(20)
@given(rows=st.lists(TIMED_ROWS, max_size=30), data=st.data())
def test_neither_order_nor_split_nor_restart_changes_a_byte(
    operator: Hopping, rows: list[Row], data: st.DataObject
) -> None:
    ends = [Move([], 11), Move([], 23, "chunks"), Move([], 24, "snapshot"), Move([], FOREVER)]
    check_any_order(operator, rows, data, ends)


@every_shape
@examples(20)
@given(steps=moves(ROWS))
def test_what_comes_out_later_is_not_before_the_promise(operator: Hopping, steps: list[Move]) -> None:
    check_output_watermark(operator, steps)


@every_shape
@examples(20)
@given(rows=st.lists(TIMED_ROWS, max_size=20))
def test_woken_whenever_it_asks_it_publishes_all_and_forgets_all(operator: Hopping, rows: list[Row]) -> None:
    state, out = woken(operator, rows)
    assert last(out, IDENTITY) == expected(operator, rows, FOREVER)
    assert len(state.panes) == len(state.publications) == 0


@pytest.mark.parametrize("count", [0, 1 << 60])
@examples(50)
@given(steps=moves(TIMED_ROWS))
def test_it_makes_no_difference_how_earlier_windows_are_looked_up(count: int, steps: list[Move]) -> None:
    operator = comparing(7, 3, 9, 1, 40)
    plainly = play(operator, steps).out
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SortedRuns, "count", lambda self, first, last: count)
        assert texts(play(operator, steps).out) == texts(plainly)


def row(at: int | None, k: str | None = "a", v: int = 1) -> Row:
    return {"k": k, "x": None, "v": v, "tags": None, "at": at}


def told(played: Played) -> list[tuple[Any, ...]]:
    names = ("window_start", "n", "n_before", "n_change", "n_ratio", "revision")
    return [tuple(each[name] for name in names) for each in played.out]


def test_a_window_is_compared_with_the_one_that_began_so_long_before() -> None:
    rows = [row(1), row(2), row(21), row(22), row(23)]
    played = play(comparing(10, 10, 20), [Move(rows, NEVER), Move([], FOREVER)])
    assert told(played) == [(0, 2, None, None, None, 0), (20, 3, 2, 1, 1.5, 0)]


def test_keys_are_compared_with_themselves() -> None:
    rows = [row(1, "a"), row(2, "b"), row(3, "b"), row(11, "a"), row(12, None)]
    played = play(comparing(10, 10, 10), [Move(rows, NEVER), Move([], FOREVER)])
    assert [(each["k"], each["n_before"]) for each in played.out if each["window_start"] == 10] == [
        (None, None),
        ("a", 1),
    ]


def test_of_a_key_that_has_fallen_silent_nothing_is_published() -> None:
    played = play(comparing(10, 10, 10), [Move([row(1)], NEVER), Move([], FOREVER)])
    assert [each["window_start"] for each in played.out] == [0]


def test_there_is_no_ratio_to_zero() -> None:
    rows = [row(1, v=0), row(11, v=4)]
    played = play(comparing(10, 10, 10), [Move(rows, NEVER), Move([], FOREVER)])
    assert [(r["total_before"], r["total_change"], r["total_ratio"]) for r in played.out] == [
        (None, None, None),
        (0, 4, None),
    ]


def test_a_correction_of_the_earlier_window_publishes_the_later_one_again() -> None:
    steps = [Move([row(1), row(11)], NEVER), Move([], 20), Move([row(2)], 21, "chunks")]
    assert told(play(comparing(10, 10, 10, keep=30), steps)) == [
        (0, 1, None, None, None, 0),
        (10, 1, 1, 0, 1.0, 0),
        (0, 2, None, None, None, 1),
        (10, 1, 2, -1, 0.5, 1),
    ]


def test_an_earlier_window_that_comes_to_be_late_is_compared_with_after_all() -> None:
    steps = [Move([row(11)], NEVER), Move([], 20), Move([row(2)], 21, "snapshot")]
    assert told(play(comparing(10, 10, 10, keep=30), steps)) == [
        (10, 1, None, None, None, 0),
        (0, 1, None, None, None, 0),
        (10, 1, 1, 0, 1.0, 1),
    ]


def test_where_both_windows_are_corrected_at_once_there_is_one_more_revision() -> None:
    steps = [Move([row(1), row(11)], NEVER), Move([], 20), Move([row(2), row(12)], 21)]
    assert told(play(comparing(10, 10, 10, keep=30), steps))[2:] == [
        (0, 2, None, None, None, 1),
        (10, 2, 2, 0, 1.0, 1),
    ]


def test_an_earlier_window_is_held_until_none_can_be_compared_with_it() -> None:
    for keep in (0, 5):
        operator = comparing(10, 10, 30, keep=keep)
        state = operator.initial_state(SCHEMA)
        operator.step(state, table([row(3)]), NEVER)
        operator.step(state, table([]), 39 + keep)
        assert (operator.next_timer(state), len(state.panes), len(state.publications)) == (40 + keep, 1, 0)
        operator.step(state, table([]), 40 + keep)
        assert (operator.next_timer(state), len(state.panes)) == (None, 0)


def test_a_row_is_late_for_a_window_that_is_held_only_to_be_compared_with() -> None:
    steps = [Move([row(3)], NEVER), Move([row(4), row(31)], 10), Move([], 40)]
    played = play(comparing(10, 10, 30), steps)
    assert [each["at"] for each in played.late] == [4]
    assert told(played) == [(0, 1, None, None, None, 0), (30, 1, 1, 0, 1.0, 0)]


WIDE = parse("k STRING, i INT, n BIGINT, f FLOAT, d DECIMAL(38,2), s STRING, at TIMESTAMP")


def built(size: str = "10 microseconds", **given: Any) -> Any:
    return windows.tumbling(size, "k", **given).build(Side(WIDE, "at"))


def pair(column: str, before: Any, now: Any) -> Row:
    """How the greatest value of a column compares in two windows."""
    empty = dict.fromkeys(WIDE.names)
    rows = [{**empty, "k": "a", "at": 1, column: before}, {**empty, "k": "a", "at": 11, column: now}]
    operator = built(compare="10 microseconds", y=agg.max(column))
    return play(operator, [Move(rows, NEVER), Move([], FOREVER)], WIDE).out[1]


@pytest.mark.parametrize(
    ("column", "before", "now", "change", "ratio"),
    [
        ("i", -(2**31), 2**31 - 1, 2**32 - 1, (2**31 - 1) / -(2**31)),
        ("n", 2**62 + 1, 2**62 + 3, 2, 1.0),
        ("n", 3, 2**53 + 1, 2**53 - 2, 3002399751580331.0),
        ("n", 0, 2**53 + 1, 2**53 + 1, None),
        ("n", None, 3, None, None),
        ("n", 3, None, None, None),
        ("f", 0.5, 2.0, 1.5, 4.0),
        ("f", 0.0, 2.0, 2.0, None),
        ("f", -0.0, 2.0, 2.0, None),
        ("f", math.inf, 2.0, -math.inf, 0.0),
        ("d", Decimal("0.10"), Decimal("0.35"), Decimal("0.25"), 3.5),
        ("d", Decimal("0.00"), Decimal("0.35"), Decimal("0.35"), None),
        ("d", Decimal("9" * 36 + ".99"), Decimal("1.00"), Decimal("-" + "9" * 35 + "8.99"), 1e-36),
    ],
)
def test_numbers_of_each_type_are_compared(
    column: str, before: Any, now: Any, change: Any, ratio: Any
) -> None:
    out = pair(column, before, now)
    assert (out["y_before"], out["y_change"], out["y_ratio"]) == (before, change, ratio)


def test_nan_compared_is_nan() -> None:
    out = pair("f", math.nan, 1.0)
    assert all(math.isnan(out[f"y_{name}"]) for name in ("before", "change", "ratio"))


@pytest.mark.parametrize(
    ("column", "before", "now", "kind"),
    [
        ("n", -(2**63), 2**63 - 1, "BIGINT"),
        ("d", Decimal("-" + "9" * 36 + ".99"), Decimal("9" * 36 + ".99"), r"DECIMAL\(38,2\)"),
    ],
)
def test_a_change_that_does_not_fit_its_type_is_refused(
    column: str, before: Any, now: Any, kind: str
) -> None:
    with pytest.raises(UsageError, match=f'a change of "y" does not fit {kind}'):
        pair(column, before, now)


def test_the_columns_that_compare_come_after_the_aggregates() -> None:
    operator = built(compare="1 hour", size="1 minute", i=agg.max("i"), s=agg.max("s"), d=agg.sum("d"))
    schema = operator.output_schema(WIDE)
    assert schema.names[3:-2] == [
        *("i", "s", "d"),
        *("i_before", "i_change", "i_ratio"),
        *("d_before", "d_change", "d_ratio"),
    ]
    kinds = [pa.int32(), pa.int64(), pa.float64(), *[pa.decimal128(38, 2)] * 2, pa.float64()]
    assert schema.types[6:-2] == kinds
    assert all(field.nullable for field in list(schema)[6:-2])


def test_bounds_of_an_estimate_are_not_compared() -> None:
    operator = built(compare="1 hour", size="1 minute", n=agg.approx_distinct("s", bounds=True))
    assert operator.output_schema(WIDE).names[3:-2] == [
        "n",
        "n_low",
        "n_high",
        "n_before",
        "n_change",
        "n_ratio",
    ]


def test_what_compares_estimates_is_itself_an_estimate() -> None:
    operator = built(compare="1 hour", size="1 minute", q=agg.quantile("n", 0.5), n=agg.count())
    assert {"q", "q_before", "q_change", "q_ratio"} < set(operator.uncompared_columns)
    assert not any(name.startswith("n") for name in operator.uncompared_columns)
    assert replace(operator, compare=None).uncompared_columns == operator.windowing.uncompared_columns


def test_an_aggregate_whose_name_is_taken_is_refused() -> None:
    with pytest.raises(UsageError, match='tumbling has two columns "n_ratio"'):
        built(compare="1 hour", size="1 minute", n=agg.count(), n_ratio=agg.count("s")).output_schema(WIDE)


def test_windows_without_a_number_cannot_be_compared() -> None:
    with pytest.raises(UsageError, match="tumbling has nothing to compare"):
        built(compare="1 hour", size="1 minute", s=agg.max("s")).output_schema(WIDE)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"compare": "90 seconds"}, 'tumbling has no windows that began "90 seconds" apart'),
        ({"compare": "30 seconds"}, 'tumbling has no windows that began "30 seconds" apart'),
        ({"compare": "soon"}, 'invalid interval "soon"'),
        ({"compare": agg.count()}, 'tumbling cannot call an aggregate "compare"'),
        (
            {"compare": "1 hour", "emit": "early", "every": "1 second"},
            'tumbling cannot compare windows with emit="early"',
        ),
    ],
)
def test_what_cannot_be_meant_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        windows.tumbling("1 minute", "k", n=agg.count(), **given)
    assert caught.value.message == message


def test_hopping_windows_are_compared_at_multiples_of_the_hop() -> None:
    door = windows.hopping("1 hour", "5 minutes", compare="10 minutes", n=agg.count())
    assert getattr(door.build(Side(WIDE, "at")), "compare") == timedelta(minutes=10)  # noqa: B009
    with pytest.raises(UsageError, match='hopping has no windows that began "7 minutes" apart') as caught:
        windows.hopping("1 hour", "5 minutes", compare="7 minutes", n=agg.count())
    assert caught.value.detail == "one begins every 5 minutes"


@pytest.mark.parametrize("door", [windows.sliding, windows.session])
def test_other_windows_say_that_they_do_not_compare(door: Any) -> None:
    with pytest.raises(UsageError, match='cannot take "compare" as an aggregate') as caught:
        door("1 minute", n=agg.count(), compare="1 hour")
    assert caught.value.hint == "only tumbling and hopping windows take compare="


def test_an_operator_can_be_sent_to_a_worker_and_its_text_tells_its_settings() -> None:
    operator = comparing(6, 2, 4)
    assert pickle.loads(pickle.dumps(operator)) == operator
    assert str(operator) != str(comparing(6, 2, 6))
