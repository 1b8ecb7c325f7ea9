"""Scan against an oracle that sorts all events of a key and folds them in a loop."""

from __future__ import annotations

import pickle
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.errors import UsageError
from headwater.operators.event_time import FOREVER, NEVER
from headwater.operators.operator import run
from headwater.operators.scan import Scan
from headwater.schema import parse
from soaking import examples
from unit.operators.stepping import (
    SCHEMA,
    TIMED_ROWS,
    Move,
    Row,
    in_one,
    key,
    listed,
    moves,
    play,
    rank,
    splits,
    table,
    texts,
)

PAGE = Path(__file__).parents[3] / "docs/operators/scan.md"
BY = ("k", "x")
STATE = parse("n BIGINT NOT NULL, trail STRING, third FLOAT, seen ARRAY<BIGINT>")


def trail(state: Row | None, event: Row) -> Row:
    """A fold whose result tells the order of events, changes its state in place, and rounds."""
    state = state or {"n": 0, "trail": None, "third": 0.0, "seen": []}
    state["n"] += 1
    state["trail"] = f"{state['trail'] or ''}{event['v']}{event['tags']}"[-40:]
    state["third"] = float(np.float32(state["third"] + 1 / 3))
    state["seen"].append(event["v"])
    return state


def trails(before: pa.Table, events: pa.Table, groups: npt.NDArray[np.int64]) -> pa.Table:
    """The same, of tables."""
    assert before.column_names == [*STATE.names, "_known"]
    assert set(groups.tolist()) == set(range(len(before)))
    assert (np.diff(groups) >= 0).all()
    states: list[Any] = [state if state.pop("_known") else None for state in before.to_pylist()]
    after = []
    for event, group in zip(events.to_pylist(), groups.tolist(), strict=True):
        states[group] = trail(states[group], event)
        after.append({**states[group], "seen": list(states[group]["seen"])})
    return pa.Table.from_pylist(after, STATE)


SCANS = [Scan(trail, BY, "at", STATE, vectorised=False), Scan(trails, BY, "at", STATE, vectorised=True)]
SCAN = SCANS[0]
both = pytest.mark.parametrize("scan", SCANS, ids=["rows", "tables"])


def row(at: int | None, v: int = 0, k: str = "a") -> Row:
    return {"k": k, "x": None, "v": v, "tags": None, "at": at}


def in_time(steps: list[Move]) -> list[Row]:
    return [new for move in steps for new in move.rows if new["at"] is not None and new["at"] >= move.clock]


def expected(events: list[Row], clock: int) -> list[Row]:
    ordered = sorted((e for e in events if e["at"] < clock), key=lambda e: (e["at"], rank(e)))
    states: dict[object, Row] = {}
    out = []
    for event in ordered:
        state = trail(states.get(key(event, BY)), event)
        states[key(event, BY)] = state
        out.append({name: event[name] for name in (*BY, "at")} | state | {"seen": list(state["seen"])})
    return out


@both
@examples(120)
@given(moves())
def test_any_split_clock_and_restart_gives_what_the_oracle_gives(scan: Scan, steps: list[Move]) -> None:
    played = play(scan, steps)
    events, clock = in_time(steps), steps[-1].clock
    assert sorted(texts(played.out)) == sorted(texts(expected(events, clock)))
    assert len(played.out) + len(played.state.waiting.until(FOREVER)) + len(played.late) == sum(
        len(m.rows) for m in steps
    )
    assert len(played.state.waiting.until(FOREVER)) == sum(event["at"] >= clock for event in events)


@both
@examples(60)
@given(st.lists(TIMED_ROWS, max_size=30), st.data())
def test_a_batch_gives_what_the_steps_give_to_the_byte_whatever_the_order(
    scan: Scan, rows: list[Row], data: st.DataObject
) -> None:
    batch = run(scan, table(rows), FOREVER)
    played = play(scan, [*data.draw(splits(rows)), Move([], FOREVER)])
    assert texts(listed(batch[-1].out)) == texts(listed(played.steps[-1].out))


@examples(60)
@given(moves())
def test_both_kinds_of_fold_give_the_same_to_the_byte(steps: list[Move]) -> None:
    assert texts(play(SCANS[0], steps).out) == texts(play(SCANS[1], steps).out)


def test_a_step_emits_key_by_key_in_order_of_time() -> None:
    events = [row(4, k="a"), row(2, k="c"), row(3, k="a"), row(9, k="c"), row(2, k="b")]
    played = play(SCAN, [*in_one(events), Move([], FOREVER)])
    assert [(out["k"], out["at"]) for out in played.out] == [("b", 2), ("c", 2), ("c", 9), ("a", 3), ("a", 4)]


def test_an_event_waits_until_the_clock_is_after_it() -> None:
    state = SCAN.initial_state(SCHEMA)
    assert SCAN.step(state, table([row(5)]), 5).late is None
    assert SCAN.next_timer(state) == 6
    assert len(SCAN.step(state, table([]), 5).out) == 0
    assert len(SCAN.step(state, table([]), 6).out) == 1
    assert SCAN.next_timer(state) is None


def test_an_event_from_before_the_clock_or_without_a_time_is_late() -> None:
    late = SCAN.step(SCAN.initial_state(SCHEMA), table([row(4), row(None), row(5)]), 5).late
    assert late is not None
    assert [event["at"] for event in listed(late)] == [4, None]


def test_what_the_fold_raises_is_passed_on_and_leaves_the_state_as_it_was() -> None:
    def picky(state: Row | None, event: Row) -> Row:
        if event["v"] == 13:
            raise ZeroDivisionError("thirteen")
        return {"n": event["v"]}

    scan = Scan(picky, ("k",), "at", pa.schema([("n", pa.int64())]), vectorised=False)
    state = scan.initial_state(SCHEMA)
    scan.step(state, table([row(1, 1), row(2, 13)]), NEVER)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError, match="thirteen"):
            scan.step(state, table([row(9)]), 5)
    assert [event["at"] for event in listed(state.waiting.until(FOREVER))] == [1, 2]
    assert len(state.states.runs) == 0


def test_the_output_is_the_key_the_time_and_the_state() -> None:
    assert SCAN.output_schema(SCHEMA).names == ["k", "x", "at", *STATE.names]
    assert Scan(trail, ("at", "k"), "at", STATE, False).output_schema(SCHEMA).names == [
        "at",
        "k",
        *STATE.names,
    ]
    assert SCAN.key == BY


def test_unknown_columns_and_taken_names_are_refused() -> None:
    with pytest.raises(UsageError, match='scan finds no column "acount"'):
        Scan(trail, ("acount",), "at", STATE, False).output_schema(SCHEMA)
    for name in ("k", "at", "_known"):
        with pytest.raises(UsageError, match=f'the state of scan cannot have a column "{name}"'):
            Scan(trail, BY, "at", pa.schema([(name, pa.int64())]), False).output_schema(SCHEMA)


def test_an_operator_can_be_sent_to_a_worker() -> None:
    scan = Scan(max, BY, "at", STATE, vectorised=False)
    assert pickle.loads(pickle.dumps(scan)) == scan


def documented(name: str) -> Any:
    """A function from the page on scan."""
    names: dict[str, Any] = {}
    for block in re.findall(r"```python\n(import numpy.*?)```", PAGE.read_text(), re.DOTALL):
        exec(block, names)
    return names[name]


@examples(40)
@given(steps=moves(TIMED_ROWS))
@pytest.mark.parametrize(
    ("name", "column", "fold"),
    [
        ("running_count", "n", lambda state, event: {"n": (state["n"] if state else 0) + 1}),
        ("running_sum", "total", lambda s, event: {"total": (s["total"] if s else 0) + event["cents"]}),
    ],
)
def test_the_folds_of_the_docs_page_work(name: str, column: str, fold: Any, steps: list[Move]) -> None:
    schema = pa.schema([field.with_name("cents") if field.name == "v" else field for field in SCHEMA])
    state = pa.schema([(column, pa.int64())])
    steps = [Move([{"cents": r["v"], **r} for r in m.rows], m.clock, m.restart) for m in steps]
    tables = Scan(documented(name), BY, "at", state, vectorised=True)
    rows = Scan(fold, BY, "at", state, vectorised=False)
    assert texts(play(tables, steps, schema).out) == texts(play(rows, steps, schema).out)


def even(state: dict[str, Any] | None, event: dict[str, Any]) -> dict[str, Any]:
    """Add up, and fail on an odd value."""
    if event["v"] % 2:
        raise ValueError(f"{event['v']} is odd")
    return {"n": (state or {"n": 0})["n"] + event["v"] + 1}


def evens(before: pa.Table, events: pa.Table, groups: npt.NDArray[np.int64]) -> pa.Table:
    """The same for many."""
    states = [
        {"n": n} if known else None for n, known in zip(*map(pa.ChunkedArray.to_pylist, before), strict=True)
    ]
    after = []
    for event, place in zip(events.to_pylist(), groups.tolist(), strict=True):
        states[place] = even(states[place], event)
        after.append(states[place])
    return pa.Table.from_pylist(after, pa.schema([("n", pa.int64())]))


@pytest.mark.parametrize(("fold", "vectorised"), [(even, False), (evens, True)])
@given(plan=moves(TIMED_ROWS))
def test_a_tolerant_scan_is_one_over_the_events_that_do_not_fail(
    fold: Any, vectorised: bool, plan: list[Move]
) -> None:
    whole = [*plan, Move([], FOREVER, "chunks"), Move([], FOREVER, "snapshot")]
    scan = Scan(fold, BY, "at", pa.schema([("n", pa.int64())]), vectorised, tolerant=True)
    good = [replace(move, rows=[row for row in move.rows if row["v"] % 2 == 0]) for move in whole]
    played, wanted = play(scan, whole), play(replace(scan, tolerant=False), good)
    assert sorted(texts(played.out)) == sorted(texts(wanted.out))
    dead = [row for step in played.steps if step.dead is not None for row in listed(step.dead)]
    late = [row for step in played.steps if step.late is not None for row in listed(step.late)]
    odd = [row for move in whole for row in move.rows if row["v"] % 2]
    assert len(dead) + sum(row["v"] % 2 for row in late) == len(odd)
    assert all(row["_error"] == f"ValueError: {row['v']} is odd" for row in dead)


def test_a_fold_that_fails_on_too_many_events_is_wrong_and_not_its_input() -> None:
    scan = Scan(even, BY, "at", pa.schema([("n", pa.int64())]), tolerant=True)
    state = scan.initial_state(SCHEMA)
    scan.step(state, table([{**row(n), "v": 1} for n in range(101)]), NEVER)
    with pytest.raises(ValueError, match="1 is odd"):
        scan.step(state, table([]), FOREVER)
