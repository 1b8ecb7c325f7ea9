"""A capture that goes on by itself: begun anew when the database or the log was away.

Invariant: what waiting mends is waited for, longer each time; anything else ends it with its reason.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from headwater.capture.capture import Capture
from headwater.capture.figures.status import CaptureStatus, status_of
from headwater.errors import (
    Fenced,
    HeadwaterError,
    LogRefused,
    LogUnavailable,
    RowError,
    SourceRefused,
    SourceUnavailable,
)

SHORTEST, LONGEST = 0.5, 30.0
"""Seconds before it is begun anew: at first, and at the most."""
STEADY = 5.0
"""Seconds after which a capture that fails has been well before: it is begun anew as soon as at first."""
ASKED_TIMES, ASKED_SECONDS = 10, 0.2
_log = logging.getLogger("headwater")


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
        figures = capture.figures()
        figures = replace(figures, changes=self._before + figures.changes)
        state = figures.state if self._state == "running" else self._state
        return status_of(self.name, state, capture.state, figures, self._error)

    def catch_up(self, stop: threading.Event | None = None) -> None:
        """Capture what is committed now, unless it is stopped; what fails is raised."""
        try:
            with self._make() as capture:
                self._capture, self._state = capture, "running"
                capture.catch_up(stop)
        except BaseException as error:
            self._end_with(error)
            raise
        self._state = "ended"

    def run(self, stop: threading.Event) -> None:
        """Capture until it is stopped, or until it fails for a reason that waiting does not mend."""
        pause = SHORTEST
        while not stop.is_set():
            started = time.monotonic()
            try:
                self._run_once(stop)
                break
            except BaseException as error:
                if not self._is_mended_by_waiting(error):
                    self._broken(error)
                    raise self._told(error) from None
                self._wait_for(error)
            pause = SHORTEST if time.monotonic() - started > STEADY else pause
            stop.wait(pause)
            pause = min(2 * pause, LONGEST)
        self._state = "ended"

    def _is_mended_by_waiting(self, error: BaseException) -> bool:
        if isinstance(error, Fenced):
            return self._was_asked()
        away = isinstance(error, LogUnavailable | SourceUnavailable)
        return away and not isinstance(error, LogRefused | SourceRefused)

    def _wait_for(self, error: BaseException) -> None:
        if self._state != "waiting":
            _log.warning("capture %s waits: %s", self.name, str(error).splitlines()[0])
        self._state, self._error = "waiting", error if isinstance(error, HeadwaterError) else None

    def _broken(self, error: BaseException) -> None:
        self._end_with(error)
        _log.error("capture %s has ended: %s", self.name, str(self._error).replace("\n", "; "))

    def _end_with(self, error: BaseException) -> None:
        told = self._told(error)
        if not isinstance(told, HeadwaterError):
            told = HeadwaterError(f"capture {self.name} failed", detail=f"{type(error).__name__}: {error}")
        self._state, self._error = "broken", told

    def _told(self, error: BaseException) -> BaseException:
        """Return an error as it is told: that of a producer of the capture is the capture's."""
        if not isinstance(error, Fenced):
            return error
        return Fenced(
            f'another capture named "{self.name}" has taken over',
            detail="it goes on from where this one was; nothing is lost",
            hint="let only one capture of a name run at a time, or name them otherwise",
        )

    def _was_asked(self) -> bool:
        """Tell whether it was fenced by somebody who asks for something, and not by another capture."""
        known = 0 if self._capture is None else self._capture.state.requests
        for _ in range(ASKED_TIMES):  # who has fenced it says why a moment later
            with suppress(LogUnavailable):
                if self._requests() > known:
                    return True
            time.sleep(ASKED_SECONDS)
        return False

    def _run_once(self, stop: threading.Event) -> None:
        with self._make() as capture:
            if self._capture is not None:
                self._before += self._capture.changes
            self._capture, self._state, self._error = capture, "running", None
            try:
                capture.run(stop)
            except (SourceUnavailable, RowError) as error:
                # Others are told, too; not where the log is the trouble, or is another's now.
                capture.note("waiting" if self._is_mended_by_waiting(error) else "broken", error)
                raise
