"""A capture that goes on by itself: begun anew when the database or the log was away.

Invariant: what waiting mends is waited for, longer each time; anything else ends it with its reason.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from headwater.capture.capture import Capture
from headwater.capture.state import SnapshotProgress
from headwater.errors import (
    Fenced,
    HeadwaterError,
    LogRefused,
    LogUnavailable,
    SourceRefused,
    SourceUnavailable,
)
from headwater.values.json_ready import JsonReady

SHORTEST, LONGEST = 0.5, 30.0
"""Seconds before it is begun anew: at first, and at the most."""


@dataclass(frozen=True)
class CaptureStatus(JsonReady):
    """How a capture is doing."""

    capture: str
    state: str
    """``starting``, ``snapshot``, ``streaming``, ``waiting`` (for what is away), ``broken`` or ``ended``."""
    changes: int = 0
    """Changes of the stream that were written since it began."""
    position: str | None = None
    snapshots: Mapping[str, SnapshotProgress] = field(default_factory=dict)
    stopped: Mapping[str, str] = field(default_factory=dict)
    """Tables that are captured no more, and why."""
    error: HeadwaterError | None = None


class CaptureWorker:
    """Runs a capture, in the thread that calls it."""

    def __init__(self, name: str, make: Callable[[], Capture], requests: Callable[[], int] = lambda: 0):
        self.name, self._make, self._requests = name, make, requests
        self._capture: Capture | None = None
        self._state, self._before = "starting", 0
        self._error: HeadwaterError | None = None

    def status(self) -> CaptureStatus:
        """Return how it is doing, from any thread."""
        capture = self._capture
        if capture is None:
            return CaptureStatus(self.name, self._state, self._before, error=self._error)
        kept = capture.state
        state = (
            ("snapshot" if capture.snapshotting else "streaming") if self._state == "running" else self._state
        )
        done = self._before + capture.changes
        return CaptureStatus(self.name, state, done, kept.position, kept.snapshots, kept.stopped, self._error)

    def catch_up(self) -> None:
        """Capture what is committed now; what fails is raised."""
        with self._make() as capture:
            self._capture, self._state = capture, "running"
            capture.catch_up()
        self._state = "ended"

    def run(self, stop: threading.Event) -> None:
        """Capture until it is stopped, or until it fails for a reason that waiting does not mend."""
        pause = SHORTEST
        while not stop.is_set():
            started = time.monotonic()
            try:
                self._run_once(stop)
                self._state = "ended"
                return
            except (LogUnavailable, SourceUnavailable) as error:
                self._error = error
                if isinstance(error, LogRefused | SourceRefused):
                    self._state = "broken"
                    raise
            except Fenced as error:
                self._error = error
                if not self._was_asked():
                    self._state = "broken"
                    raise
                continue
            except BaseException as error:
                self._state = "broken"
                self._error = error if isinstance(error, HeadwaterError) else None
                raise
            self._state = "waiting"
            pause = SHORTEST if time.monotonic() - started > LONGEST else min(2 * pause, LONGEST)
            stop.wait(pause)

    def _was_asked(self) -> bool:
        """Tell whether it was fenced by somebody who asks for something, and not by another capture."""
        return self._capture is not None and self._requests() > self._capture.state.requests

    def _run_once(self, stop: threading.Event) -> None:
        with self._make() as capture:
            if self._capture is not None:
                self._before += self._capture.changes
            self._capture, self._state, self._error = capture, "running", None
            capture.run(stop)
