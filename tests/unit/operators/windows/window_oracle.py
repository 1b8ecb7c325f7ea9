"""What holds for every kind of window, whatever the steps: results are an oracle's, and promises are kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
from hypothesis import strategies as st

from headwater.operators.event_time import FOREVER, NEVER
from headwater.operators.windows.windowing import Windowed
from unit.operators.stepping import SCHEMA, Move, Row, key, listed, play, splits, table, texts
from unit.operators.windows.windowed import batch, last, without_late

Window = Windowed[Any]


class WindowOracle(NamedTuple):
    """What looks at all rows: whether one is late at a clock, and what is known then of the others."""

    is_late: Callable[[Any, Row, int], bool]
    expected: Callable[[Any, list[Row], int], list[str]]

    def split(self, operator: Window, steps: list[Move]) -> tuple[list[Row], list[Row]]:
        """The rows that are used, and those that are late."""
        used: list[Row] = []
        late: list[Row] = []
        for move in steps:
            for row in move.rows:
                (late if self.is_late(operator, row, move.clock) else used).append(row)
        return used, late

    def check(self, operator: Window, steps: list[Move]) -> None:
        """Late rows, results, and the results of everything at once are those of the oracle."""
        played, clock, identity = play(operator, steps), steps[-1].clock, operator.identity
        used, late = self.split(operator, steps)
        assert texts(without_late(played.late)) == texts(late)
        assert len(used) + len(played.late) + played.duplicates == sum(len(move.rows) for move in steps)
        assert last(played.out, identity) == self.expected(operator, used, clock)
        assert last(batch(operator, used, clock), identity) == last(played.out, identity)

    def check_each_step(self, operator: Window, steps: list[Move]) -> None:
        """After each step, all that the clock has passed is published."""
        for count, move in enumerate(steps, 1):
            used, _ = self.split(operator, steps[:count])
            out = play(operator, steps[:count]).out
            assert last(out, operator.identity) == self.expected(operator, used, move.clock)


def check_revisions(operator: Window, steps: list[Move]) -> None:
    """Revisions count the publications of a window."""
    counts: dict[object, int] = {}
    for row in play(operator, steps).out:
        window = key(row, operator.identity)
        assert row["revision"] == counts.get(window, 0)
        counts[window] = row["revision"] + 1
    if not operator.windowing.corrects and operator.every is None:
        assert set(counts.values()) <= {1}


def check_any_order(
    operator: Window,
    rows: list[Row],
    data: st.DataObject,
    ends: Sequence[Move] = (Move([], 23), Move([], FOREVER)),
) -> None:
    """Neither the order of rows, nor their split into steps, nor a restart changes a byte."""
    some, others = data.draw(splits(rows)), data.draw(splits(rows))
    outs = [play(operator, [*steps, *ends]).out for steps in (some, others)]
    assert texts(outs[0]) == texts(outs[1])


def check_output_watermark(operator: Window, steps: list[Move]) -> None:
    """What comes out later is not before the promise, which never goes back."""
    watermark, event_time = NEVER, operator.event_time_out
    assert event_time is not None
    for move, step in zip(steps, play(operator, steps).steps, strict=True):
        times = step.out[event_time].cast(pa.int64()).to_pylist()
        assert all(at is None or at >= watermark for at in times)
        assert operator.output_watermark(move.clock) >= watermark
        watermark = operator.output_watermark(move.clock)


def woken(operator: Window, rows: list[Row]) -> tuple[Any, list[Row]]:
    """Its state and what came out, once it was woken whenever it asked, until it asked no more."""
    state = operator.initial_state(SCHEMA)
    out = listed(operator.step(state, table(rows), NEVER).out)
    while (timer := operator.next_timer(state)) is not None:
        out += listed(operator.step(state, table([]), timer).out)
    return state, out
