"""How the figures of a pipeline were over the last two days, as its runners have written them down."""

from __future__ import annotations

import time

from headwater.api.subject import Subject, checked
from headwater.engine.figures.history import WHOLE, History, read_history


def history(
    pipeline: Subject, node: str | None = None, *, since: float = 600.0, points: int = 300
) -> History:
    """Return how the figures of a pipeline, or of one of its nodes, were over the last seconds.

    - ``node=None``: the name of a node, source or table; None for the pipeline as a whole: what comes in from
      outside each second, and its nodes together.
    - ``since=600``: how many seconds back, up to two days.
    - ``points=300``: how many points at the most, each as long as the others.

    Points are a second apart for the last ten minutes, ten for the last three hours, a minute before that. It
    is read while a runner writes, and after it was killed; where nothing was noted, it is None.
    """
    found = checked(pipeline)
    name = WHOLE if node is None else found[node].name
    return read_history(found.home, name, time.time(), since, points)
