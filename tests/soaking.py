"""How many examples the tests of properties look at: a few, or, with ``make soak``, so many times more."""

from __future__ import annotations

import os
from typing import Any

from hypothesis import settings

TIMES = int(os.environ.get("SOAK", "1"))


def examples(count: int, **more: Any) -> settings:
    """Return the settings of a property; how long it takes never decides."""
    return settings(max_examples=count * TIMES, deadline=None, **more)
