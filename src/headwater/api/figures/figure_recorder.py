"""The figures of a run, noted once a second in a thread of their own.

Invariant: a run neither waits for them nor fails by them; the last thing that is noted is that it has ended.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from headwater.closing import Closing
from headwater.engine.figures.figure_writer import FigureWriter
from headwater.engine.figures.runner_report import RunFigures

EVERY_SECONDS = 1.0


class FigureRecorder(Closing):
    """Notes what is read of a run, until it is closed."""

    def __init__(self, home: Path, read: Callable[[], RunFigures]):
        self._read, self._writer, self._over = read, FigureWriter(home), threading.Event()
        self._last, self._unread = RunFigures(), 0
        self._thread = threading.Thread(target=self._run, daemon=True, name="figures")
        self._thread.start()

    @property
    def failures(self) -> int:
        """How often figures could not be read or noted."""
        return self._writer.failures + self._unread

    def close(self) -> None:
        """Note that the run has ended, and note no more."""
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        with self._writer:
            while not self._over.is_set():
                self._writer.note(self._figures())
                self._over.wait(EVERY_SECONDS)
            self._writer.note(self._figures(), ended=True)

    def _figures(self) -> RunFigures:
        """Return the figures as they are now, or those of before where they cannot be read."""
        try:
            self._last = self._read()
        except Exception:  # whatever is wrong with them, the run goes on
            self._unread += 1
        return self._last
