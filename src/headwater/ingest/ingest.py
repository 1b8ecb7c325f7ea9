"""What every way in does: it runs until it is stopped, counts, and saves how it is doing.

Invariant: when ``run`` returns, everything that was taken in is durable, and the last checkpoint says so.
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from headwater import durations
from headwater.closing import Closing
from headwater.ingest.checkpoints import IngestCheckpoint, IngestCheckpoints
from headwater.ingest.retry import retry_while_away
from headwater.ingest.status import IngestCounts, IngestStatus
from headwater.log import Log

CHECKPOINT_SECONDS = 5.0
"""How often it is noted how a way in is doing, at the most."""


class Ingest(Closing, ABC):
    """A way into a topic without a broker, as ``headwater.ingest.open`` returns it."""

    def __init__(self, log: Log, name: str, address: str):
        self.name, self.address = name, address
        self.log, self.checkpoints = log, IngestCheckpoints(log, name)
        saved = self.checkpoints.load()
        self.counts = IngestCounts(saved.counts if saved is not None else {})
        self.stopping = threading.Event()
        self._state = "running"
        self._saved_at = 0.0

    def run(self, stop: threading.Event) -> None:
        """Take in what comes until ``stop`` is set, or until it fails for a reason that waiting does not
        mend."""
        self.stopping = stop
        try:
            self._run(stop)
        finally:
            self._state = "ended"
        self.checkpoint(force=True)

    def status(self) -> IngestStatus:
        """Return how it is doing, from any thread."""
        return IngestStatus(self.name, self.address, self._state, self.counts.to_dict(), durations.now())

    def checkpoint(self, *, force: bool = False) -> None:
        """Note how it is doing, if that was some seconds ago."""
        if force or time.monotonic() - self._saved_at >= CHECKPOINT_SECONDS:
            self._measure()
            made = IngestCheckpoint(self.address, self._state, self.counts.to_dict(), self.progress())
            retry_while_away(lambda: self.checkpoints.save(made), self.stopping)
            self._saved_at = time.monotonic()

    def _measure(self) -> None:
        """Count what somebody else counts, before it is noted."""

    def progress(self) -> Mapping[str, Any]:
        """Return how far it has come in what can be read again."""
        return {}

    def close(self) -> None:
        """Let go of sockets and topics."""
        self.checkpoints.close()

    @abstractmethod
    def _run(self, stop: threading.Event) -> None:
        """Take in what comes until it is stopped."""
