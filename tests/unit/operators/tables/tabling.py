"""Changes of tables at random, tables as dicts, and what a reader makes of changes that come out."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from headwater.operators.event_time import NEVER
from headwater.operators.operator import Operator, Step, run
from headwater.operators.pairing import Pairing
from unit.operators.bucketed import ran
from unit.operators.stepping import Restarts, Row, listed, table, texts

Key = tuple[Any, ...]


@dataclass(frozen=True)
class Made:
    """A change of one of the inputs."""

    side: int
    row: Row


@dataclass(frozen=True)
class Turn:
    """Changes of one step, and how the state is made anew before it."""

    changes: list[Made]
    restart: str | None = None


def value(given: Any) -> Any:
    """A value as keys compare it."""
    if isinstance(given, float):
        return "NaN" if math.isnan(given) else given + 0.0
    return given


def key_of(row: Row, names: Iterable[str]) -> Key:
    return tuple(value(row[name]) for name in names)


def change(rows: dict[Key, Row], primary: Iterable[str], new: Row) -> None:
    """Make one change of a table that is a dict."""
    if new["_deleted"]:
        rows.pop(key_of(new, primary), None)
    else:
        rows[key_of(new, primary)] = {**new, "_deleted": False}


def now(out: Iterable[Row], identity: Iterable[str], before: dict[Key, Row] | None = None) -> dict[Key, Row]:
    """The table that a reader has after changes."""
    rows = dict(before or {})
    for new in out:
        change(rows, identity, new)
    return rows


def told(rows: dict[Key, Row]) -> dict[str, str]:
    """A table to be compared: identical, not only equal, so that zero has a sign."""
    return {repr(key): repr(row) for key, row in rows.items()}


def gone(row: Row, primary: Iterable[str]) -> Row:
    """The deletion of a row's key."""
    kept = set(primary)
    return {name: row[name] if name in kept else None for name in row} | {"_deleted": True}


def changes_of(side: int, primary: tuple[str, ...], values: dict[str, list[Any]]) -> st.SearchStrategy[Made]:
    """One of all changes there are, each a number: that is drawn sooner than its values."""
    count = math.prod(map(len, values.values()))

    def made(number: int) -> Made:
        number, kind = divmod(number, 3)
        row = {}
        for name, some in values.items():
            number, place = divmod(number, len(some))
            row[name] = some[place]
        return Made(side, gone(row, primary) if kind == 2 else {**row, "_deleted": False})

    return st.integers(0, 3 * count - 1).map(made)


def turns(changes: st.SearchStrategy[Made]) -> st.SearchStrategy[list[Turn]]:
    restart = st.sampled_from([None, None, "chunks", "snapshot"])
    return st.lists(st.builds(Turn, st.lists(changes, max_size=8), restart), min_size=1, max_size=6)


def check_step(step: Step, identity: tuple[str, ...], before: dict[Key, Row], after: dict[Key, Row]) -> None:
    """A step tells each identity once, only what has changed, and what majors from one table to the other."""
    out = listed(step.out)
    keys = [key_of(row, identity) for row in out]
    assert len(set(keys)) == len(keys)
    assert told(now(out, identity, before)) == told(after)
    was, is_ = told(before), told(after)
    assert all(was.get(repr(key)) != is_.get(repr(key)) for key in keys)
    deleted = [row for row in out if row["_deleted"]]
    assert texts(deleted) == texts(gone(row, identity) for row in deleted)


def play(
    operator: Operator[Any],
    plan: list[Turn],
    sent: Callable[[list[Made]], pa.Table],
    wanted: Callable[[list[Made]], dict[Key, Row]],
) -> list[Step]:
    """Let an operator go through steps, and compare what it has told after each with an oracle."""
    schema, seen, steps = sent([]).schema, [], []
    state, before = operator.initial_state(schema), wanted([])
    again = operator.initial_state(schema)  # never restarted: a restart must not change a byte
    restarts = Restarts(operator, schema)
    for turn in plan:
        state = restarts.before_step(state, turn.restart)
        step = operator.step(state, sent(turn.changes), NEVER)
        assert step.out.schema.equals(operator.output_schema(schema))
        assert texts(listed(operator.step(again, sent(turn.changes), NEVER).out)) == texts(listed(step.out))
        assert operator.next_timer(state) is None
        assert (step.late, step.duplicates, step.dead) == (None, 0, None)
        seen += turn.changes
        after = wanted(seen)
        check_step(step, operator.identity, before, after)
        before = after
        steps.append(step)
    return steps


def batch(operator: Operator[Any], rows: pa.Table) -> dict[Key, Row]:
    out = [row for step in run(operator, rows, 0) for row in listed(step.out)]
    return now(out, operator.identity)


def sender(pairing: Pairing, left: pa.Schema, right: pa.Schema) -> Callable[[list[Made]], pa.Table]:
    """How changes of two tables go in: mixed, each side in its order."""
    schema = pairing.schema("join", left, right)

    def sent(changes: list[Made]) -> pa.Table:
        sides = [[made.row for made in changes if made.side == side] for side in (0, 1)]
        return pairing.sent(table(sides[0], left), table(sides[1], right), schema)

    return sent


def check_rescaled(operator: Operator[Any], steps: list[pa.Table], counts: list[int]) -> None:
    """What comes of each step is the same, in any order, where the number of buckets changes in between."""
    outcomes = [ran(operator, [(rows, NEVER) for rows in steps], each).out for each in (counts, [1])]
    assert outcomes[0] == outcomes[1]


def in_buckets(operator: Operator[Any], rows: pa.Table) -> dict[Key, Row]:
    """What comes of rows that are spread over buckets, one for each value of the operator's key."""
    keys = [key_of(row, operator.key) for row in rows.select(list(operator.key)).to_pylist()]
    found: dict[Key, Row] = {}
    for bucket in set(keys):
        found |= batch(operator, rows.filter(pa.array([key == bucket for key in keys])))
    return found
