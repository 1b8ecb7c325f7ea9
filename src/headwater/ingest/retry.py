"""What waiting mends is waited for: a log that is away for a while stops nothing.

Invariant: a call that failed for a reason that may pass is made again, until it succeeds or the work is to
end; any other failure is raised at once.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import TypeVar

from headwater.backoff import Backoff
from headwater.errors import HeadwaterError, is_transient

T = TypeVar("T")
BACKOFF = Backoff(0.2, 10.0, jitter=0.0)
_log = logging.getLogger("headwater")


def retry_while_away(call: Callable[[], T], stop: threading.Event) -> T:
    """Return what a call returns, made again while the log is away, but not once the work is to end."""
    for attempt, pause in enumerate(BACKOFF.pauses()):
        try:
            return call()
        except HeadwaterError as error:
            if not is_transient(error) or stop.is_set():
                raise
            if not attempt:
                _log.warning("ingest waits: %s", error.message)
        stop.wait(pause)
    raise AssertionError("there is always another attempt")
