"""The settings that windows have in common, read and checked.

Invariant: settings that contradict each other are refused when the operator is called, before any row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal, get_args

from headwater import durations
from headwater.errors import UsageError, nearest
from headwater.names import listed
from headwater.operators.aggregates.aggregate import Aggregate
from headwater.operators.operator import Operator
from headwater.operators.spec import Side
from headwater.operators.windows.windowing import Windowing
from headwater.transforms.rows import Names
from headwater.transforms.settings import check_choice, required_event_time
from headwater.transforms.transform import Transform

Length = str | timedelta
Late = Literal["drop", "side", "correct"]
Emit = Literal["final", "early"]
LATE: tuple[str, ...] = get_args(Late)
EMIT: tuple[str, ...] = get_args(Emit)
EARLY_SETTINGS = ("emit", "every")
HOP_SETTINGS = ("offset", "compare")


@dataclass(frozen=True)
class WindowSettings:
    """What all kinds of windows have in common, as users give it."""

    what: str
    by: Names | None
    late: str
    keep: Length | None
    aggregates: Mapping[str, Aggregate]
    length: timedelta | None
    """How long every window is; None where their lengths differ."""

    def transform(self, operator: Callable[[Windowing], Operator[Any]]) -> Transform:
        """Check them, and return the transform that makes its operator when it meets a DataFrame."""
        late, keep = _lateness(self.what, self.late, self.keep)
        key = tuple(dict.fromkeys(listed(self.by or ())))
        aggregates = _aggregates(self.what, self.aggregates, self.length)

        def build(rows: Side) -> Operator[Any]:
            event_time = required_event_time(self.what, rows)
            return operator(Windowing(self.what, key, event_time, aggregates, late, keep))

        return Transform(self.what, build)


def length_or_zero(length: Length | None) -> timedelta:
    """Return a length of time; None is no time at all."""
    return timedelta() if length is None else durations.interval(length)


def _lateness(what: str, late: str, keep: Length | None) -> tuple[str, timedelta]:
    _check_choice(what, "late", late, LATE)
    if late == "correct" and keep is None:
        raise UsageError(
            f'{what} with late="correct" needs to know how long',
            hint='say how long after its end a window is corrected, as in keep="1 hour"',
        )
    if late != "correct" and keep is not None:
        raise UsageError(
            f'{what} keeps nothing with late="{late}"', hint='leave keep= out, or use late="correct"'
        )
    return late, length_or_zero(keep)


def early_interval(what: str, emit: str, every: Length | int | None) -> timedelta | int | None:
    """Return how often unfinished windows are published: a length of event time, or a number of rows."""
    _check_choice(what, "emit", emit, EMIT)
    if emit == "early" and every is None:
        raise UsageError(
            f'{what} with emit="early" needs to know when',
            hint='say how often unfinished windows are published, as in every="10 seconds" or every=100',
        )
    if emit == "final" and every is not None:
        raise UsageError(f'{what} takes every= only with emit="early"', hint='add emit="early"')
    if not isinstance(every, int):
        return None if every is None else durations.interval(every)
    if every < 1:
        raise UsageError(f"{what} cannot publish windows every {every} rows", hint="use 1 or more")
    return every


def comparison(what: str, compare: Length | None, hop: timedelta, emit: str) -> timedelta | None:
    """Return how long before a window the one began that it is compared with."""
    _refuse_aggregate(what, "compare", compare)
    if compare is None:
        return None
    if emit == "early":
        raise UsageError(
            f'{what} cannot compare windows with emit="early"',
            detail="a window that is not finished would be held against a whole one",
            hint="leave emit= or compare= out; shorter windows with compare= tell sooner",
        )
    length = durations.interval(compare)
    if length % hop:
        raise UsageError(
            f'{what} has no windows that began "{compare}" apart',
            detail=f"one begins every {durations.interval_text(hop)}",
            hint="compare= is a multiple of that",
        )
    return length


def _refuse_aggregate(what: str, setting: str, value: object) -> None:
    if isinstance(value, Aggregate):
        raise UsageError(
            f'{what} cannot call an aggregate "{setting}"',
            detail=f"{setting}= is a setting of {what}",
            hint="give it another name",
        )


def _check_choice(what: str, setting: str, value: object, choices: tuple[str, ...]) -> None:
    _refuse_aggregate(what, setting, value)
    check_choice(what, setting, value, choices)


def _aggregates(
    what: str, aggregates: Mapping[str, Aggregate], length: timedelta | None
) -> tuple[tuple[str, Aggregate], ...]:
    """Check aggregates, and tell them how long windows are, if all are of one length."""
    if not aggregates:
        raise UsageError(f"{what} has nothing to aggregate", hint="name an aggregate, as in n=agg.count()")
    for name, aggregate in aggregates.items():
        if not isinstance(aggregate, Aggregate):
            raise UsageError(
                f'{what} cannot take "{name}" as an aggregate',
                detail=f"it is {aggregate!r:.60}",
                hint=_hint(name),
            )
        if "." in name or name.startswith("_"):
            raise UsageError(
                f'{what} cannot call an aggregate "{name}"',
                hint="use a name without a dot that does not begin with an underscore",
            )
    return tuple((name, aggregate.within(length)) for name, aggregate in aggregates.items())


def _hint(name: str) -> str:
    if name in HOP_SETTINGS:
        return f"only tumbling and hopping windows take {name}="
    return (
        nearest(name, ("late", "keep", *EARLY_SETTINGS, *HOP_SETTINGS))
        or f"write {name}=agg.count(), or another aggregate"
    )
