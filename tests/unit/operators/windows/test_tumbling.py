"""Tumbling windows, sentence by sentence; `test_hopping.py` has them against an oracle."""

from __future__ import annotations

import pickle
from datetime import timedelta

import pyarrow as pa
import pytest

from headwater.errors import UsageError
from headwater.operators.event_time import FOREVER, NEVER
from headwater.operators.windows.hopping import Hopping
from headwater.schema import TIMESTAMP, parse
from unit.operators.stepping import SCHEMA, Move, Played, Row, TablesInMemory, in_one, play, table
from unit.operators.windows.windowed import AGGREGATES, Count, windowing

BY = ("k",)


def tumbling(
    size: int = 10, late: str = "drop", keep: int = 0, offset: int = 0, every: int | None = None
) -> Hopping:
    length, moved = timedelta(microseconds=size), timedelta(microseconds=offset)
    early = None if every is None else timedelta(microseconds=every)
    return Hopping(windowing("tumbling", late, keep, BY), length, length, moved, early)


def row(at: int | None, k: str | None = "a", v: int = 1) -> Row:
    return {"k": k, "x": None, "v": v, "tags": None, "at": at}


def told(played: Played) -> list[tuple[int, int, int, bool]]:
    return [(r["window_start"], r["n"], r["revision"], r["complete"]) for r in played.out]


def test_a_window_has_its_start_and_not_its_end() -> None:
    played = play(tumbling(), [*in_one([row(0), row(9), row(10), row(-1)]), Move([], FOREVER)])
    assert told(played) == [(-10, 1, 0, True), (0, 2, 0, True), (10, 1, 0, True)]
    assert [r["window_end"] for r in played.out] == [0, 10, 20]


def test_a_window_is_published_once_the_clock_has_come_to_its_end() -> None:
    operator = tumbling()
    state = operator.initial_state(SCHEMA)
    operator.step(state, table([row(3)]), NEVER)
    assert operator.next_timer(state) == 10
    assert len(operator.step(state, table([]), 9).out) == 0
    assert len(operator.step(state, table([]), 10).out) == 1
    assert operator.next_timer(state) is None
    assert len(state.panes) == 0


def test_a_row_from_before_the_clock_is_used_while_its_window_is_open() -> None:
    played = play(tumbling(), [Move([row(9)], 9), Move([row(1)], 9), Move([], 10)])
    assert told(played) == [(0, 2, 0, True)]
    assert not played.late


def test_a_late_row_tells_how_late_it_is_and_for_which_window() -> None:
    played = play(tumbling(), [Move([row(5), row(None), row(31)], 32)])
    assert [(r["at"], r["late_by"], r["late_window_start"]) for r in played.late] == [
        (5, 27, 0),
        (None, None, None),
    ]
    assert tumbling().late_schema(SCHEMA).names == [*SCHEMA.names, "late_by", "late_window_start"]


def test_late_rows_have_the_schema_that_is_told() -> None:
    for clock in (NEVER, 32, FOREVER):
        (step,) = play(tumbling(), [Move([row(5), row(None)], clock)]).steps
        assert step.late is not None
        assert step.late.schema == tumbling().late_schema(SCHEMA)


def test_a_late_row_corrects_the_window_until_keep_is_over() -> None:
    operator = tumbling(late="correct", keep=5)
    steps = [Move([row(1)], NEVER), Move([], 10), Move([row(2)], 14), Move([row(3)], 15)]
    played = play(operator, steps)
    assert told(played) == [(0, 1, 0, True), (0, 2, 1, True)]
    assert [r["at"] for r in played.late] == [3]
    assert len(played.state.panes) == len(played.state.publications) == 0


def test_a_late_row_that_is_the_first_of_its_window_publishes_it_at_once() -> None:
    played = play(tumbling(late="correct", keep=5), [Move([row(2)], 12), Move([row(3)], 12, "chunks")])
    assert told(played) == [(0, 1, 0, True), (0, 2, 1, True)]


def test_what_may_be_corrected_is_forgotten_when_keep_is_over_though_nothing_comes() -> None:
    operator = tumbling(late="correct", keep=5)
    state = operator.initial_state(SCHEMA)
    operator.step(state, table([row(3)]), NEVER)
    operator.step(state, table([]), 10)
    assert (operator.next_timer(state), len(state.panes)) == (15, 1)
    operator.step(state, table([]), 15)
    assert (operator.next_timer(state), len(state.panes)) == (None, 0)


def test_what_was_published_is_not_published_again_after_a_restart() -> None:
    for restart in ("chunks", "snapshot"):
        for operator in (tumbling(), tumbling(late="correct", keep=50)):
            steps = [Move([row(3), row(15)], NEVER), Move([], 12), Move([], 13, restart), Move([], 20)]
            assert told(play(operator, steps)) == [(0, 1, 0, True), (10, 1, 0, True)]


def test_offset_moves_the_windows() -> None:
    played = play(tumbling(offset=3), [*in_one([row(2), row(3), row(12)]), Move([], FOREVER)])
    assert told(played) == [(-7, 1, 0, True), (3, 2, 0, True)]


def test_early_results_have_the_rows_from_before_a_multiple_of_every() -> None:
    steps = [Move([row(1), row(3), row(5)], NEVER), Move([], 3), Move([], 4), Move([], 5), Move([], 10)]
    played = play(tumbling(every=4), steps)
    assert told(played) == [(0, 2, 0, False), (0, 3, 1, True)]


def test_a_row_that_belongs_before_what_was_published_early_publishes_it_again() -> None:
    steps = [Move([row(1)], NEVER), Move([], 4), Move([row(2), row(6)], 5), Move([], 8)]
    assert told(play(tumbling(every=4), steps)) == [(0, 1, 0, False), (0, 2, 1, False), (0, 3, 2, False)]


def test_an_early_result_that_has_not_changed_is_not_published_again() -> None:
    steps = [Move([row(1)], NEVER), Move([], 4), Move([], 8), Move([], 10)]
    assert told(play(tumbling(every=4), steps)) == [(0, 1, 0, False), (0, 1, 1, True)]


def test_rows_come_out_in_the_order_of_windows_then_of_keys() -> None:
    rows = [row(11, "b"), row(1, "ü"), row(2, None), row(12, "a"), row(3, "b")]
    played = play(tumbling(), [*in_one(rows), Move([], FOREVER)])
    assert [(r["window_start"], r["k"]) for r in played.out] == [
        (0, None),
        (0, "b"),
        (0, "ü"),
        (10, "a"),
        (10, "b"),
    ]


def test_without_a_key_all_rows_are_one() -> None:
    operator = Hopping(windowing("tumbling", by=()), timedelta(microseconds=10), timedelta(microseconds=10))
    steps = [
        Move([row(1, "a"), row(2, "b")], NEVER),
        Move([row(3, None)], 5, "snapshot"),
        Move([], 10, "chunks"),
    ]
    assert told(play(operator, steps)) == [(0, 3, 0, True)]
    assert (operator.key, operator.identity) == ((), ("window_start",))


def test_a_zero_in_the_key_has_no_sign_and_there_is_one_nan() -> None:
    operator = Hopping(windowing("tumbling", by=("x",)), timedelta(microseconds=9), timedelta(microseconds=9))
    rows = [{**row(1), "x": x} for x in (-0.0, 0.0, float("nan"), None, -float("nan"))]
    played = play(operator, [Move(rows[:1], NEVER), Move(rows[1:], NEVER), Move([], FOREVER)])
    assert repr([(r["x"], r["n"]) for r in played.out]) == "[(None, 1), (0.0, 2), (nan, 2)]"


def test_a_step_that_learns_nothing_stores_nothing() -> None:
    operator, files = tumbling(), TablesInMemory()
    state = operator.initial_state(SCHEMA)
    stored = []
    for rows, clock in (([row(1)], NEVER), ([], 5), ([row(None)], 5)):
        operator.step(state, table(rows), clock)
        stored.append(operator.memory(state).save(files).stretches)
    assert stored[0] and stored[0] == stored[1] == stored[2]


def test_a_time_beyond_all_calendars_is_late() -> None:
    played = play(tumbling(), [Move([row((1 << 63) - 2), row(-(1 << 63) + 1), row(1)], NEVER), Move([], 10)])
    assert len(played.late) == 2
    assert told(played) == [(0, 1, 0, True)]


def test_numbers_of_keys_that_nothing_is_held_of_are_forgotten() -> None:
    operator = tumbling()
    state = operator.initial_state(SCHEMA)
    for step in range(40):
        rows = [row(step * 10 + 5, f"{step}-{n}") for n in range(100)]
        operator.step(state, table(rows), step * 10)
    assert len(state.key_ids) <= 2 * 1024
    assert len(state.panes) == 100


def test_promise_is_the_start_of_the_first_window_that_may_be_published() -> None:
    assert [tumbling().output_watermark(clock) for clock in (NEVER, 9, 10, 11)] == [NEVER, 0, 10, 10]
    assert tumbling(late="correct", keep=5).output_watermark(14) == 0
    assert tumbling(late="correct", keep=5).output_watermark(15) == 10


def test_the_columns_out_are_the_key_the_window_the_aggregates_and_what_is_told() -> None:
    names = ["k", "window_start", "window_end", "n", "total", "total_last", "revision", "complete"]
    schema = tumbling().output_schema(SCHEMA)
    assert schema.names == names
    assert schema.field("window_start").type == schema.field("window_end").type == TIMESTAMP
    assert (schema.field("revision").type, schema.field("complete").type) == (pa.int32(), pa.bool_())
    assert tumbling().event_time_out == "window_start"
    assert (tumbling().identity, tumbling().uncompared_columns) == (("k", "window_start"), ("revision",))


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ("kk STRING, at TIMESTAMP", 'tumbling finds no column "k"'),
        ("k STRING, at BIGINT", 'cannot take column "at" as the event time'),
        ("k STRING, at TIMESTAMP, late_by INT", 'tumbling cannot take rows with a column "late_by"'),
    ],
)
def test_rows_that_cannot_be_taken_are_refused(schema: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        tumbling().output_schema(parse(schema))


@pytest.mark.parametrize("name", ["k", "window_end", "revision", "complete", "total_last"])
def test_an_aggregate_whose_name_is_taken_is_refused(name: str) -> None:
    settings = windowing("tumbling", by=BY)
    taken = type(settings)("tumbling", BY, "at", (*AGGREGATES, (name, Count())))
    with pytest.raises(UsageError, match=f'tumbling has two columns "{name}"'):
        Hopping(taken, timedelta(1), timedelta(1)).output_schema(SCHEMA)


def test_an_operator_can_be_sent_to_a_worker_and_its_text_tells_its_settings() -> None:
    operator = tumbling(late="correct", keep=7, every=2)
    assert pickle.loads(pickle.dumps(operator)) == operator
    assert str(operator) != str(tumbling(late="correct", keep=8, every=2))


def test_partial_results_are_held_and_not_rows() -> None:
    operator = tumbling()
    state = operator.initial_state(SCHEMA)
    operator.step(state, table([row(at, v=at) for at in range(10)] * 50), NEVER)
    assert state.panes.all().rows["n.count"].to_pylist() == [500]
