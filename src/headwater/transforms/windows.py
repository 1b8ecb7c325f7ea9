"""The doors to windows: ``clicks.transform(windows.tumbling("1 minute", by="url", clicks=agg.count()))``.

Invariant: what cannot be meant is refused when the door is made; what depends on columns, when it meets
a DataFrame.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from headwater import durations
from headwater.errors import UsageError, nearest
from headwater.names import listed
from headwater.operators.aggregates.aggregate import Aggregate
from headwater.operators.operator import Operator
from headwater.operators.spec import Side
from headwater.operators.windows.hopping import Hopping
from headwater.operators.windows.session import Session
from headwater.operators.windows.sliding import Sliding
from headwater.operators.windows.windowing import Windowing
from headwater.transforms.rows import Names, _required
from headwater.transforms.transform import Transform

Length = str | timedelta
LATE = ("drop", "side", "correct")
EMIT = ("final", "early")
EARLY = ("emit", "every")
OF_HOPS = ("offset", "compare")


def tumbling(
    size: Length,
    by: Names | None = None,
    *,
    late: str = "drop",
    keep: Length | None = None,
    emit: str = "final",
    every: Length | int | None = None,
    offset: Length | None = None,
    compare: Length | None = None,
    **aggregates: Aggregate,
) -> Transform:
    """Aggregate the rows of each key in windows of one length, side by side.

    See ``docs/operators/tumbling.md``.
    """
    length = durations.interval(size)
    before = _compared("tumbling", compare, length, emit)
    shape = length, length, _length(offset), _early("tumbling", emit, every), before
    return _door("tumbling", by, (late, keep), (aggregates, length), lambda each: Hopping(each, *shape))


def hopping(
    size: Length,
    hop: Length,
    by: Names | None = None,
    *,
    late: str = "drop",
    keep: Length | None = None,
    emit: str = "final",
    every: Length | int | None = None,
    offset: Length | None = None,
    compare: Length | None = None,
    **aggregates: Aggregate,
) -> Transform:
    """Aggregate the rows of each key in windows of one length that begin every ``hop``, and overlap.

    See ``docs/operators/hopping.md``.
    """
    length, step = durations.interval(size), durations.interval(hop)
    if step > length:
        raise UsageError(
            f'hopping windows of "{size}" cannot begin every "{hop}"',
            detail="rows between two windows would be in none",
            hint="choose a hop that is not longer than the window",
        )
    before = _compared("hopping", compare, step, emit)
    shape = length, step, _length(offset), _early("hopping", emit, every), before
    return _door("hopping", by, (late, keep), (aggregates, length), lambda each: Hopping(each, *shape))


def sliding(
    size: Length,
    by: Names | None = None,
    *,
    late: str = "drop",
    keep: Length | None = None,
    emit: str = "final",
    every: int | None = None,
    **aggregates: Aggregate,
) -> Transform:
    """Aggregate, at each event, the events of its key that are less than ``size`` before it, and itself.

    See ``docs/operators/sliding.md``.
    """
    length, early = durations.interval(size), _early("sliding", emit, every)
    if isinstance(early, timedelta):
        raise UsageError(
            f'sliding windows cannot be published early every "{every}"',
            detail="each is finished as soon as the clock has passed its event",
            hint="name a number of rows: every=1 publishes each event at once",
        )
    return _door("sliding", by, (late, keep), (aggregates, length), lambda each: Sliding(each, length, early))


def session(
    gap: Length,
    by: Names | None = None,
    *,
    late: str = "drop",
    keep: Length | None = None,
    emit: str = "final",
    every: Length | int | None = None,
    **aggregates: Aggregate,
) -> Transform:
    """Aggregate the rows of each key that follow each other in less than ``gap``.

    See ``docs/operators/session.md``.
    """
    shape = durations.interval(gap), _early("session", emit, every)
    return _door("session", by, (late, keep), (aggregates, None), lambda each: Session(each, *shape))


def _door(
    what: str,
    by: Names | None,
    lateness: tuple[str, Length | None],
    aggregates: tuple[Mapping[str, Aggregate], timedelta | None],
    make: Callable[[Windowing], Operator[Any]],
) -> Transform:
    late, keep = _lateness(what, *lateness)
    key, made = tuple(dict.fromkeys(listed(by or ()))), _aggregates(what, *aggregates)

    def build(rows: Side) -> Operator[Any]:
        return make(Windowing(what, key, _required(what, rows.event_time), made, late, keep))

    return Transform(what, build)


def _length(given: Length | None) -> timedelta:
    return timedelta() if given is None else durations.interval(given)


def _lateness(what: str, late: str, keep: Length | None) -> tuple[str, timedelta]:
    _check(what, "late", late, LATE)
    if late == "correct" and keep is None:
        raise UsageError(
            f'{what} with late="correct" needs to know how long',
            hint='say how long after its end a window is corrected, as in keep="1 hour"',
        )
    if late != "correct" and keep is not None:
        raise UsageError(
            f'{what} keeps nothing with late="{late}"', hint='leave keep= out, or use late="correct"'
        )
    return late, _length(keep)


def _early(what: str, emit: str, every: Length | int | None) -> timedelta | int | None:
    _check(what, "emit", emit, EMIT)
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


def _compared(what: str, given: Length | None, hop: timedelta, emit: str) -> timedelta | None:
    _no_aggregate(what, "compare", given)
    if given is None:
        return None
    if emit == "early":
        raise UsageError(
            f'{what} cannot compare windows with emit="early"',
            detail="a window that is not finished would be held against a whole one",
            hint="leave emit= or compare= out; shorter windows with compare= tell sooner",
        )
    length = durations.interval(given)
    if length % hop:
        raise UsageError(
            f'{what} has no windows that began "{given}" apart',
            detail=f"one begins every {durations.interval_text(hop)}",
            hint="compare= is a multiple of that",
        )
    return length


def _no_aggregate(what: str, setting: str, given: object) -> None:
    if isinstance(given, Aggregate):
        raise UsageError(
            f'{what} cannot call an aggregate "{setting}"',
            detail=f"{setting}= is a setting of {what}",
            hint="give it another name",
        )


def _check(what: str, setting: str, given: object, known: tuple[str, ...]) -> None:
    _no_aggregate(what, setting, given)
    if given not in known:
        choices = ", ".join(f'"{each}"' for each in known)
        raise UsageError(
            f"{what} does not know {setting}={given!r:.60}",
            detail=f"it is one of {choices}",
            hint=nearest(str(given), known),
        )


def _aggregates(
    what: str, given: Mapping[str, Aggregate], length: timedelta | None
) -> tuple[tuple[str, Aggregate], ...]:
    """Check aggregates, and tell them how long windows are, if all are of one length."""
    if not given:
        raise UsageError(f"{what} has nothing to aggregate", hint="name an aggregate, as in n=agg.count()")
    for name, each in given.items():
        if not isinstance(each, Aggregate):
            raise UsageError(
                f'{what} cannot take "{name}" as an aggregate',
                detail=f"it is {each!r:.60}",
                hint=_meant(name),
            )
        if "." in name or name.startswith("_"):
            raise UsageError(
                f'{what} cannot call an aggregate "{name}"',
                hint="use a name without a dot that does not begin with an underscore",
            )
    return tuple((name, each.within(length)) for name, each in given.items())


def _meant(name: str) -> str:
    if name in OF_HOPS:
        return f"only tumbling and hopping windows take {name}="
    return (
        nearest(name, ("late", "keep", *EARLY, *OF_HOPS)) or f"write {name}=agg.count(), or another aggregate"
    )
