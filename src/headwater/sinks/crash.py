"""Named points around the steps of a commit, at which a test can let the process die.

What a sink promises about crashes can only be shown by crashing between any two of its steps, so
the steps say where they are. Invariant: unless a test has armed them, points do nothing.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

_reached: Callable[[str], None] | None = None


def point(name: str) -> None:
    """Say that a commit has got here."""
    if _reached is not None:
        _reached(name)


def arm(count: int) -> None:
    """Let this process kill itself, as ``kill -9`` would, at the ``count``-th point from now on."""
    left = count

    def die(name: str) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    watch(die)


def watch(reached: Callable[[str], None] | None) -> None:
    """Call a function at every point; None ends that."""
    global _reached
    _reached = reached
