"""What a decider may have beside its functions, checked when it is declared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from headwater.errors import UsageError, nearest
from headwater.sourcing.event_schema import Upcasters
from headwater.sourcing.timer import DurableTimer

Boundary = Callable[[str, Any], Sequence[Sequence[str]]]


@dataclass(frozen=True, kw_only=True)
class DeciderSettings:
    """What a decider may have beside its functions.

    - ``upcasters={}``: by the name of an old event, ``"Credited"``, or its name and revision,
      ``("Deposited", 1)``: a function from its fields to an event of today, or a list of several.
    - ``timers=()``: commands that follow events after some time.
    - ``tags=None``: from an event to the texts under which others find it.
    - ``boundary=None``: from a key and a command to lists of tags: the state is then folded from the events
      that have all tags of one of the lists, and not from those of the key.
    - ``snapshot_every=100``: after how many events of an aggregate its state is kept; None for never.
    - ``partitions=1``: of its topic; aggregates of several can be decided on side by side.
    """

    upcasters: Upcasters = field(default_factory=dict)
    timers: Sequence[DurableTimer] = ()
    tags: Callable[[Any], Sequence[str]] | None = None
    boundary: Boundary | None = None
    snapshot_every: int | None = 100
    partitions: int = 1


def checked_settings(name: str, given: dict[str, Any]) -> DeciderSettings:
    """Return the settings that were given, or refuse them."""
    try:
        made = DeciderSettings(**given)
    except TypeError:
        known = list(DeciderSettings.__dataclass_fields__)
        wrong = next(each for each in given if each not in known)
        raise UsageError(
            f'decider "{name}" has no setting "{wrong}"',
            hint=nearest(wrong, known) or "settings: " + ", ".join(known),
        ) from None
    if made.snapshot_every is not None and made.snapshot_every < 1:
        raise UsageError(f"snapshot_every is 1 or more, or None, not {made.snapshot_every}")
    if made.boundary is not None and (made.tags is None or made.timers or made.partitions != 1):
        raise UsageError(
            f'decider "{name}" has a boundary, which needs tags, one partition, and no timers',
            detail="its states are folded from events of several keys, in the order of the log",
        )
    return made
