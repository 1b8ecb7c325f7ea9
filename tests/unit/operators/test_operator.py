"""A small operator that keeps the contract, and what everything at once makes of it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from headwater.operators.event_time import FOREVER, NEVER, times
from headwater.operators.memory.operator_memory import OperatorMemory
from headwater.operators.memory.rows_in_time import RowsInTime
from headwater.operators.operator import ERROR, Operator, Step, rejected, run
from headwater.schema import parse

SCHEMA = parse("v BIGINT, at TIMESTAMP")


class Waiting(Operator[RowsInTime]):
    """Lets rows out when the clock has passed them."""

    key = ("v",)

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        return schema

    def initial_state(self, schema: pa.Schema) -> RowsInTime:
        return RowsInTime(schema)

    def memory(self, state: RowsInTime) -> OperatorMemory:
        return OperatorMemory({"waiting": state.runs}, {"added": (state, "added")})

    def step(self, state: RowsInTime, rows: pa.Table, clock: int) -> Step:
        state.add(rows, times(rows, "at"), np.zeros(len(rows), np.int64))
        ready = state.until(clock)
        state.drop(clock)
        return Step(ready.take(pa.array(np.argsort(ready["v"].to_numpy(), kind="stable"))))

    def next_timer(self, state: RowsInTime) -> int | None:
        first = state.first()
        return None if first is None else first + 1


def rows(*at: int) -> pa.Table:
    return pa.table({"v": list(range(len(at))), "at": pa.array(at, SCHEMA.field("at").type)}, schema=SCHEMA)


def out(steps: list[Step]) -> list[list[int]]:
    return [step.out["v"].to_pylist() for step in steps]


def test_everything_at_once_is_a_step_that_knows_no_time_and_one_under_the_clock() -> None:
    assert out(run(Waiting(), rows(5, 3, 9), FOREVER)) == [[], [0, 1, 2]]
    assert out(run(Waiting(), rows(5, 3, 9), 6)) == [[], [0, 1]]


def test_a_clock_that_has_not_come_to_anything_makes_no_second_step() -> None:
    assert out(run(Waiting(), rows(5), 5)) == [[]]
    assert out(run(Waiting(), rows(5), 6)) == [[], [0]]
    assert out(run(Waiting(), rows(), FOREVER)) == [[]]


def test_what_an_operator_does_not_say_is_that_all_results_count_and_can_be_repeated() -> None:
    operator = Waiting()
    assert (operator.identity, operator.uncompared_columns, operator.event_time_out) == ((), (), None)
    assert operator.repeatable
    assert operator.late_schema(SCHEMA) == SCHEMA
    assert operator.output_watermark(7) == 7


def test_a_rejected_row_has_its_columns_and_why() -> None:
    dead = rejected(rows(1, 2), ["too old", "too new"])
    assert dead.column_names == ["v", "at", ERROR]
    assert dead[ERROR].to_pylist() == ["too old", "too new"]
    none = rejected(rows(), [])
    assert none.schema.field(ERROR).type == pa.string()


def test_never_and_forever_are_the_ends_of_what_a_time_can_be() -> None:
    limits = np.iinfo(np.int64)
    assert (limits.min, limits.max) == (NEVER, FOREVER)
