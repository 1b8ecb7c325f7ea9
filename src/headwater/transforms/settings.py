"""Checks of settings that several families of operators have: one of some words, and an event time."""

from __future__ import annotations

from collections.abc import Sequence

from headwater.errors import UsageError, nearest
from headwater.operators.spec import Side


def check_choice(what: str, setting: str, value: object, choices: Sequence[str]) -> None:
    """Refuse a value that is not among the choices."""
    if value not in choices:
        raise UsageError(
            f"{what} does not know {setting}={value!r:.60}",
            detail="it is one of " + ", ".join(f'"{choice}"' for choice in choices),
            hint=nearest(str(value), choices),
        )


def required_event_time(what: str, side: Side, rows: str = "these rows") -> str:
    """Return the event-time column of an input, or refuse rows that have none."""
    if side.event_time is None:
        raise UsageError(
            f"{what} needs to know when events happened, and {rows} have no event time",
            hint="declare event_time= at their source, and keep that column",
        )
    return side.event_time
