"""Which events a fold fails on: they are folded one by one, and those that fail are left out.

Invariant: what is left is folded as if the others had not come, whatever step they came in.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
import pyarrow as pa

from headwater.operators.fold import KNOWN
from headwater.operators.groups import Numbers
from headwater.operators.operator import rejected

MOST = 100
"""Events of one step that are set aside; a fold that fails on more is wrong, not its input."""


class FoldedEvents(Protocol):
    """Events in the order in which they are folded, and the number of each one's key."""

    @property
    def events(self) -> pa.Table:
        """The events."""

    @property
    def groups(self) -> Numbers:
        """The number of each one's key."""


def split_failing_events(
    fold: Callable[[pa.Table, pa.Table, Numbers], pa.Table], before: pa.Table, ripe: FoldedEvents
) -> tuple[Numbers, pa.Table]:
    """Return the places of the events that can be folded, and the others with what the fold said."""
    states = [before.slice(number, 1) for number in range(before.num_rows)]
    good: list[int] = []
    failed: list[int] = []
    said: list[str] = []
    # One by one, because a fold does not say which event it failed on; this is done where it has failed.
    for place, group in enumerate(ripe.groups.tolist()):
        try:
            after = fold(states[group], ripe.events.slice(place, 1), np.zeros(1, np.int64))
        except Exception as error:
            if len(failed) == MOST:
                raise
            failed.append(place)
            said.append(f"{type(error).__name__}: {error}")
            continue
        good.append(place)
        states[group] = after.append_column(KNOWN, pa.array([True]))
    dead = rejected(ripe.events.take(pa.array(failed, pa.int64())), said)
    return np.array(good, np.int64), dead
