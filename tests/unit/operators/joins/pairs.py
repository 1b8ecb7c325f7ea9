"""Rows of two inputs at random, in steps, and an operator over both played through them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from headwater.operators.event_time import NEVER
from headwater.operators.memory.key_hash import HashedGroups, KeyHashes, hashed_groups
from headwater.operators.operator import Operator, Step, run
from headwater.operators.pairing import Pairing, pairing
from headwater.schema import parse
from unit.operators import stepping
from unit.operators.stepping import Move, Played, Row, listed, table

LEFT = parse("k STRING, x DOUBLE, v BIGINT, at TIMESTAMP")
RIGHT = parse("k STRING, y DOUBLE, w BIGINT, at TIMESTAMP")
ON = pairing("join", {"k": "k", "x": "y"})
PREFIX = "r_"


@dataclass(frozen=True)
class Twin:
    """One call of an operator over two inputs, and how its state is made anew before it."""

    left: list[Row]
    right: list[Row]
    clock: int
    restart: str | None = None


@dataclass(frozen=True)
class Field:
    """What two inputs look like."""

    left: pa.Schema = LEFT
    right: pa.Schema = RIGHT
    on: Pairing = ON

    @property
    def schema(self) -> pa.Schema:
        return self.on.schema("join", self.left, self.right)

    def sent(self, left: Sequence[Row], right: Sequence[Row]) -> pa.Table:
        """Rows on their way, both sides in turn, as they come from several tasks."""
        halves = [(left[:1], right[:1]), (left[1:], right[1:])]
        return pa.concat_tables(
            self.on.sent(table(mine, self.left), table(other, self.right), self.schema)
            for mine, other in halves
        )

    def play(self, operator: Operator[Any], twins: Sequence[Twin]) -> Played:
        """Go through steps as `stepping.play` does."""
        played = Played(state=operator.initial_state(self.schema))
        restarts = stepping.Restarts(operator, self.schema)
        for twin in twins:
            played.state = restarts.before_step(played.state, twin.restart)
            step = operator.step(played.state, self.sent(twin.left, twin.right), twin.clock)
            assert step.out.schema.equals(operator.output_schema(self.schema))
            played.steps.append(step)
            timer = operator.next_timer(played.state)
            assert timer is None or timer > twin.clock
        return played

    def late(self, steps: Sequence[Step]) -> tuple[list[Row], list[Row]]:
        """The late rows of both sides."""
        late = [step.late for step in steps if step.late is not None]
        left, right = ([side(rows) for rows in late] for side in (self.on.left, self.on.right))
        return [row for rows in left for row in listed(rows)], [row for rows in right for row in listed(rows)]

    def batch(
        self, operator: Operator[Any], left: Sequence[Row], right: Sequence[Row], clock: int
    ) -> list[Row]:
        return [row for step in run(operator, self.sent(left, right), clock) for row in listed(step.out)]


FIELD = Field()
play, late, batch = FIELD.play, FIELD.late, FIELD.batch


def met(row: Row, names: Sequence[str]) -> tuple[Any, ...] | None:
    """The key of a row as a join has it: none if a part is null."""
    key = tuple("NaN" if isinstance(row[n], float) and math.isnan(row[n]) else row[n] for n in names)
    return None if None in key else key


KEYS: list[tuple[Any, Any]] = [("a", 0.0), ("a", -0.0), ("a", math.nan), ("b", 0.0), (None, 0.0), ("b", None)]


def _row(number: int, second: str, value: str) -> Row:
    number, key = divmod(number, len(KEYS))
    number, v = divmod(number, 3)
    times = [None, *range(-3, 40)]
    return {"k": KEYS[key][0], second: KEYS[key][1], value: v, "at": times[number % len(times)]}


_COUNT = len(KEYS) * 3 * 44
LEFTS = st.integers(0, _COUNT - 1).map(lambda number: _row(number, "x", "v"))
RIGHTS = st.integers(0, _COUNT - 1).map(lambda number: _row(number, "y", "w"))


def half_alike(rows: pa.Table, by: Sequence[str]) -> HashedGroups:
    """Groups whose keys have one of two first numbers, as no hash would give."""
    groups = hashed_groups(rows, by)
    return replace(groups, keys=KeyHashes(groups.keys.high & 1, groups.keys.low))


def one_key(rows: st.SearchStrategy[Row]) -> st.SearchStrategy[Row]:
    """Rows that all meet: many of equal times."""
    return rows.map(lambda row: {**row, "k": "a", **{name: 0.0 for name in ("x", "y") if name in row}})


@st.composite
def twins(
    draw: Callable[..., Any],
    lefts: st.SearchStrategy[Row] = LEFTS,
    rights: st.SearchStrategy[Row] = RIGHTS,
    steps: int = 6,
) -> list[Twin]:
    """Steps of a few rows under a clock that does not go back."""
    clock, made = NEVER, []
    for _ in range(draw(st.integers(1, steps))):
        if draw(st.booleans()):
            clock = max(clock, -5) + draw(st.integers(0, 12))
        restart = draw(st.sampled_from([None, None, "chunks", "snapshot"]))
        rows = (draw(st.lists(lefts, max_size=6)), draw(st.lists(rights, max_size=6)))
        made.append(Twin(*rows, clock, restart))
    return made


ANY = twins() | twins(one_key(LEFTS), one_key(RIGHTS))


@st.composite
def splits(draw: Callable[..., Any], left: list[Row], right: list[Row]) -> list[Twin]:
    """The given rows, in any order and in any steps, before the clock is known."""
    sides = [("l", row) for row in left] + [("r", row) for row in right]
    moves: list[Move] = draw(stepping.splits(sides))  # type: ignore[arg-type]
    return [
        Twin(
            [row for side, row in move.rows if side == "l"],  # type: ignore[misc]
            [row for side, row in move.rows if side == "r"],  # type: ignore[misc]
            move.clock,
            move.restart,
        )
        for move in moves
    ]


def judged(steps: Sequence[Twin]) -> tuple[list[Twin], list[Row], list[Row]]:
    """The steps without the rows that are late, and those, told once more."""

    def late(row: Row, clock: int) -> bool:
        return row["at"] is None or row["at"] < clock

    good = [
        replace(
            step,
            left=[row for row in step.left if not late(row, step.clock)],
            right=[row for row in step.right if not late(row, step.clock)],
        )
        for step in steps
    ]
    left = [row for step in steps for row in step.left if late(row, step.clock)]
    return good, left, [row for step in steps for row in step.right if late(row, step.clock)]
