"""The generator of the demo's events, in a process of its own.

It tells on its stdout how many events it has written, so it ends by itself, at a closed pipe, should
this process be killed. Invariant: leaving the ``with`` block ends it.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from headwater.closing import Closing
from headwater.errors import HeadwaterError

PATIENCE = 5.0
"""Seconds that it has to finish a batch before it is killed."""


class EventFeed(Closing):
    """Writes so many events at once or, without a number, some all the time."""

    def __init__(self, program: Path, log: str, customers: Path, events: int | None):
        command = [sys.executable, str(program), "--log", log, "--crm", str(customers)]
        command += [] if events is None else ["--events", str(events)]
        self.written = 0
        self._errors = tempfile.TemporaryFile()
        # Ctrl-C is for this process to hear, so the other is none of the terminal's group.
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            start_new_session=True,
        )
        self._listener = threading.Thread(target=self._listen, daemon=True, name="feed")
        self._listener.start()

    def ended(self, wait: float) -> bool:
        """Tell whether all events are written, after some seconds at the most; raise if it failed."""
        self._listener.join(wait)  # it ends with the process, and has heard everything then
        if self._listener.is_alive():
            return False
        if self._process.wait():
            self._errors.seek(0)
            said = self._errors.read().decode(errors="replace").strip().splitlines()
            detail = said[-1] if said else f"exit code {self._process.returncode}"
            raise HeadwaterError("the generator of events has failed", detail=detail)
        return True

    def close(self) -> None:
        """End it, after the batch that it is writing."""
        self._process.terminate()
        try:
            self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._listener.join()
        self._errors.close()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                self.written = int(line)
