"""Rows, steps, clocks and restarts at random, and an operator played through them."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from headwater.operators.event_time import NEVER
from headwater.operators.memory.operator_memory import StoredMemory
from headwater.operators.memory.run import Stretch
from headwater.operators.memory.sorted_runs import Limits
from headwater.operators.operator import Operator, Step
from headwater.schema import parse

Row = dict[str, Any]
SCHEMA = parse("k STRING, x DOUBLE, v BIGINT NOT NULL, tags ARRAY<STRING>, at TIMESTAMP")


def table(rows: Iterable[Row], schema: pa.Schema = SCHEMA) -> pa.Table:
    """Times are given as microseconds."""
    rows = list(rows)
    columns = {f.name: [row[f.name] for row in rows] for f in schema}
    return pa.table([pa.array(columns[f.name], f.type) for f in schema], schema=schema)


def listed(rows: pa.Table) -> list[Row]:
    """The opposite of `table`, for any schema."""
    plain = [
        column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column for column in rows.columns
    ]
    return pa.table(plain, rows.column_names).to_pylist()  # type: ignore[no-any-return]


def texts(rows: Iterable[Row]) -> list[str]:
    """Rows to be compared: identical to the bit, not only equal, so that zero has a sign; NaN is NaN."""
    return [repr(row) for row in rows]


def key(row: Row, by: Iterable[str]) -> tuple[Any, ...]:
    """The key of a row as Spark groups it."""
    return tuple("NaN" if _nan(row[name]) else row[name] for name in by)


def rank(row: Row) -> tuple[Any, ...]:
    """The place of a row among those of its time, written down once more."""
    return tuple(_rank(row[name]) for name in row)


def _rank(value: Any) -> tuple[Any, ...]:
    if value is None:
        return (0,)
    if isinstance(value, float):
        return (2,) if _nan(value) else (1, value, math.copysign(1, value))
    return (1, repr(value) if isinstance(value, list) else value)


def _nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


@dataclass(frozen=True)
class Move:
    """One call of an operator, and how its state is made anew before it."""

    rows: list[Row]
    clock: int
    restart: str | None = None


@dataclass
class Played:
    """What came of a play."""

    steps: list[Step] = field(default_factory=list)
    state: Any = None

    @property
    def out(self) -> list[Row]:
        return [row for step in self.steps for row in listed(step.out)]

    @property
    def late(self) -> list[Row]:
        return [row for step in self.steps if step.late is not None for row in listed(step.late)]

    @property
    def duplicates(self) -> int:
        return sum(step.duplicates for step in self.steps)


def stored(chunk: pa.Table) -> pa.Table:
    """A chunk as it is read back from where it was stored."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, chunk.schema) as writer:
        writer.write_table(chunk)
    return pa.ipc.open_stream(sink.getvalue()).read_all()


class TablesInMemory:
    """Runs as they are read back from where they were stored."""

    def __init__(self) -> None:
        self._tables: dict[str, pa.Table] = {}

    def put(self, table: pa.Table) -> Stretch:
        name = str(len(self._tables))
        self._tables[name] = stored(table)
        return Stretch(name, table.nbytes)

    def get(self, stretch: Stretch) -> pa.Table:
        return self._tables[stretch.file]

    put_mapped, map = put, get


LOGGED, SPILLED = Limits(1 << 20, 3, 1 << 20), Limits(0, 0, 1)
"""What is new is logged; or all becomes a run, of parts as small as can be."""


def reopened(operator: Operator[Any], schema: pa.Schema, saved: StoredMemory, files: TablesInMemory) -> Any:
    state = operator.initial_state(schema)
    operator.memory(state).open(StoredMemory.from_json(json.loads(json.dumps(saved.to_json()))), files)
    return state


class Restarts:
    """Makes the state of an operator anew between its steps, from what these have stored."""

    def __init__(self, operator: Operator[Any], schema: pa.Schema):
        self._operator, self._schema = operator, schema
        self._files = TablesInMemory()

    def before_step(self, state: Any, restart: str | None) -> Any:
        saved = self._operator.memory(state).save(self._files, SPILLED if restart == "snapshot" else LOGGED)
        return state if restart is None else reopened(self._operator, self._schema, saved, self._files)


def play(operator: Operator[Any], moves: list[Move], schema: pa.Schema = SCHEMA) -> Played:
    played, restarts = Played(state=operator.initial_state(schema)), Restarts(operator, schema)
    for move in moves:
        played.state = restarts.before_step(played.state, move.restart)
        step = operator.step(played.state, table(move.rows, schema), move.clock)
        assert step.out.schema.equals(operator.output_schema(schema))
        played.steps.append(step)
        timer = operator.next_timer(played.state)
        assert timer is None or timer > move.clock
    return played


def in_one(rows: list[Row]) -> list[Move]:
    return [Move(rows, NEVER)]


VALUES: dict[str, list[Any]] = {
    "k": [None, "a", "b", "ü"],
    "x": [None, 0.0, -0.0, -1.5, math.nan],
    "v": [0, 1, 2, 3],
    "tags": [None, [], ["p"], ["p", None]],
    "at": [None, *range(-3, 40)],
}
COUNT = math.prod(map(len, VALUES.values()))


def row_of(number: int) -> Row:
    """One of all rows there are: a number is drawn sooner than five values."""
    row = {}
    for name, some in VALUES.items():
        number, place = divmod(number, len(some))
        row[name] = some[place]
    return row


ROWS = st.integers(0, COUNT - 1).map(row_of)
TIMED_ROWS = ROWS.map(lambda row: {**row, "at": 7 if row["at"] is None else row["at"]})


@st.composite
def moves(draw: Callable[..., Any], rows: st.SearchStrategy[Row] = ROWS) -> list[Move]:
    """Steps of a few rows under a clock that does not go back."""
    clock, made = NEVER, []
    for _ in range(draw(st.integers(1, 6))):
        if draw(st.booleans()):
            clock = max(clock, -5) + draw(st.integers(0, 12))
        restart = draw(st.sampled_from([None, None, "chunks", "snapshot"]))
        made.append(Move(draw(st.lists(rows, max_size=8)), clock, restart))
    return made


@st.composite
def splits(draw: Callable[..., Any], rows: list[Row]) -> list[Move]:
    """The given rows, in any order and in any steps, before the clock is known."""
    rows = draw(st.permutations(rows))
    cuts = sorted(draw(st.lists(st.integers(0, len(rows)), max_size=4)))
    bounds = zip([0, *cuts], [*cuts, len(rows)], strict=True)
    restart = st.sampled_from([None, "chunks", "snapshot"])
    return [Move(list(rows[start:end]), NEVER, draw(restart)) for start, end in bounds]
