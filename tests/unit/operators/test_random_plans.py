"""Operators step by step over random plans, without Spark, against the oracle that judges whole pipelines.

``tests/spark/test_random_pipelines.py`` does the same with everything around them, and can afford a
few plans only. What is broken on purpose here shows that the oracle is able to fail.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive_oracle as oracle
from headwater.operators import dedup, latest, scan
from headwater.operators.aggregates import agg
from headwater.operators.dedup import Dedup
from headwater.operators.event_time import NEVER
from headwater.operators.latest import Latest
from headwater.operators.operator import Operator
from headwater.operators.scan import Scan
from headwater.operators.windows.grid import Grid
from headwater.operators.windows.hopping import Hopping
from headwater.operators.windows.windowing import Windowing
from naive_oracle import START, History, Mark, Record
from random_pipelines import COLUMNS, Node, Operation, Plan, Row, fold, plan
from soaking import examples

STATE = pa.schema([("total", pa.int64()), ("seen", pa.int64())])
TYPES = {"who": pa.string(), "note": pa.string(), "at": pa.timestamp("us", "UTC")}


@examples(300)
@given(seed=st.integers(0, 2**40))
def test_operators_do_as_the_oracle_says(seed: int) -> None:
    check(seed)


def newest_first(monkeypatch: pytest.MonkeyPatch) -> None:
    order = scan.order
    monkeypatch.setattr(scan, "order", lambda rows, *by: order(rows, by[0], *(-each for each in by[1:])))


def everything_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    split_late = scan.split_late
    monkeypatch.setattr(scan, "split_late", lambda rows, column, bound: split_late(rows, column, NEVER))


def late_too_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    split_late = dedup.split_late
    monkeypatch.setattr(
        dedup, "split_late", lambda rows, column, bound: split_late(rows, column, bound + 10**7)
    )


def forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dedup.Spans, "add", lambda self, keys, at: None)


def last_to_arrive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Latest, "_newer", lambda self, state, rows, at, groups: np.ones(len(at), bool))


def ties_the_other_way(monkeypatch: pytest.MonkeyPatch) -> None:
    greater = latest._greater
    monkeypatch.setattr(latest, "_greater", lambda rows, others: ~greater(rows, others))


def closed_too_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Grid, "open", lambda self, clock: Grid.first(self, clock) + self.hop)


BROKEN = (
    newest_first,
    everything_in_time,
    late_too_soon,
    forgetful,
    last_to_arrive,
    ties_the_other_way,
    closed_too_soon,
)


@pytest.mark.parametrize("broken", BROKEN, ids=lambda broken: broken.__name__)
def test_the_oracle_finds_a_broken_operator(
    broken: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    broken(monkeypatch)
    with pytest.raises(AssertionError, match="node"):
        for seed in range(1000):
            check(seed)


def check(seed: int) -> None:
    """Check the nodes of a plan that read sources only."""
    wanted = plan(seed)
    history = played(wanted)
    sources = {source.name for source in wanted.sources}
    for node in wanted.nodes:
        if node.operation is not None and sources.issuperset(node.reads):
            out, judged = stepped(history, node, node.operation)
            late = oracle.judged(judged)
            oracle.check_late(history, node, late)
            if node.kind == "view":
                oracle.check_view(history, node, late, shown(out, node, node.operation))
            else:
                oracle.check_stream(history, node, late, oracle.changed(out, node.after))


def shown(out: list[Row], node: Node, operation: Operation) -> list[Row]:
    """Return what a view has of results: the last of each key; none where what latest has passed on fails."""
    last: dict[tuple[Any, ...], Row] = {}
    for row in out:
        made, key = oracle.changed([row], node.after), tuple(row[name] for name in node.key)
        if made:
            last[key] = made[0]
        elif operation.name == "latest":
            last.pop(key, None)
    return list(last.values())


def played(wanted: Plan) -> History:
    """Return the history of a plan as a log would have it."""
    records: dict[str, list[Record]] = {source.name: [] for source in wanted.sources}
    partitions = {source.name: source.partitions for source in wanted.sources}
    marks: list[Mark] = []
    step = 0
    for action in wanted.actions:
        step += action.name == "step"
        for values in action.rows:
            there = records[action.source]
            partition = "abc".index(values[1]) % partitions[action.source]
            there.append(Record(timed(values), partition, len(there), action.producer, step))
        if action.name == "advance":
            time = START + timedelta(seconds=action.to)
            marks += [Mark(source.name, action.producer, time, step) for source in wanted.sources]
    return History(wanted, records, marks, partitions, step - 1)


def timed(values: tuple[Any, ...]) -> Row:
    row = dict(zip(COLUMNS, values, strict=True))
    return {**row, "at": None if row["at"] is None else START + timedelta(seconds=row["at"])}


def stepped(history: History, node: Node, operation: Operation) -> tuple[list[Row], list[Row]]:
    """Return what comes out of an operator, and what was late; each step has rows, then only the time."""
    taken = oracle.taken(history, node)
    names = list(taken[0].row) if taken else list(COLUMNS)
    schema = pa.schema([(name, TYPES.get(name, pa.int64())) for name in names])
    operator = made(operation)
    state, out, late = operator.initial_state(schema), [], []
    for step in range(history.last + 1):
        rows = pa.Table.from_pylist([record.row for record in taken if record.step == step], schema)
        before = oracle.clock(history, node, step - 1) if step else oracle.NEVER
        for new, clock in ((rows, before), (rows.slice(0, 0), oracle.clock(history, node, step))):
            done = operator.step(state, new, micros(clock))
            out += done.out.to_pylist()
            late += done.late.to_pylist() if done.late is not None else []
    return out, late


def made(operation: Operation) -> Operator[Any]:
    if operation.name == "scan":
        return Scan(fold(operation.value), operation.by, "at", STATE)
    if operation.name == "dedup":
        return Dedup(operation.by, timedelta(seconds=operation.within), "at")
    if operation.name == "window":
        size = timedelta(seconds=operation.within)
        aggregates = {"rows": agg.count(), "total": agg.sum(operation.value)}
        return Hopping(Windowing("tumbling", operation.by, "at", tuple(aggregates.items())), size, size)
    return Latest(operation.by, "at")


def micros(time: datetime) -> int:
    return NEVER if time == oracle.NEVER else int(time.timestamp()) * 1_000_000
