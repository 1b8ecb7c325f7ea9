"""How many examples the tests of properties look at: ``make soak`` many more, ``make quick`` fewer."""

from __future__ import annotations

import os
from typing import Any

from hypothesis import settings

TIMES = float(os.environ.get("SOAK", "1"))
FEWEST = 5


def examples(count: int, **more: Any) -> settings:
    """Return the settings of a property; how long it takes never decides."""
    return settings(max_examples=max(round(count * TIMES), FEWEST), deadline=None, **more)
