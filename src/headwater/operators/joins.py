"""The doors of joins: each has its right rows, and makes its operator when it meets the left ones."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from headwater import clock
from headwater.errors import UsageError, nearest
from headwater.operators.door import JoinDoor, Side
from headwater.operators.pairing import On, pairing
from headwater.operators.within import HOW, Within


def within(
    right: Any,
    on: On,
    *,
    before: str | timedelta = "0 seconds",
    after: str | timedelta = "0 seconds",
    how: str = "inner",
    prefix: str | None = None,
) -> JoinDoor:
    """Join each left row with the right rows of its key from ``before`` it to ``after`` it.

    See ``docs/operators/within.md``.
    """
    pairs, lengths = pairing("within", on), (clock.span(before), clock.span(after))
    _one_of("within", "how", how, HOW)

    def build(left: Side, other: Side) -> Within:
        times = (_timed("within", left, "left"), _timed("within", other, "right"))
        return Within(pairs, times, *lengths, how, prefix)

    return JoinDoor("within", right, pairs, build)


def _one_of(what: str, name: str, given: str, known: Sequence[str]) -> None:
    if given not in known:
        raise UsageError(
            f'{what} knows no {name}="{given}"',
            detail=f"it is one of {', '.join(known)}",
            hint=nearest(given, known),
        )


def _timed(what: str, side: Side, name: str) -> str:
    """Return the event-time column of a side, or refuse rows that have none."""
    if side.event_time is None:
        raise UsageError(
            f"{what} needs to know when events happened, and its {name} rows have no event time",
            hint="declare event_time= at their source, and keep that column",
        )
    return side.event_time
