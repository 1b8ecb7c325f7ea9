"""What a process has opened, its forked children must not use: they share locks and connections."""

from __future__ import annotations

import os

from headwater.errors import UsageError


def check_process(opened_in: int) -> None:
    """Refuse to go on in another process than the one that opened something."""
    if os.getpid() != opened_in:
        raise UsageError(
            "the log was opened in another process",
            detail="a forked child shares its parent's locks and connections",
            hint="open the log, its producers and its consumers again after a fork",
        )
