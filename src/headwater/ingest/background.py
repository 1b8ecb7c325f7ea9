"""A way in at work in a thread of its own, so that the main thread is there for Ctrl-C and for the screen.

Invariant: when ``close`` returns, it has ended, and what was taken in is durable or an error was raised.
"""

from __future__ import annotations

from headwater.api.background import StoppableWork
from headwater.ingest.ingest import Ingest
from headwater.ingest.status import IngestStatus


class BackgroundIngest(StoppableWork):
    """Runs a way in until it is closed."""

    def __init__(self, ingest: Ingest):
        super().__init__(ingest.run)
        self._ingest = ingest

    @property
    def address(self) -> str:
        """Where it listens; port 0 has become a number."""
        return self._ingest.address

    def status(self) -> IngestStatus:
        """Return how it is doing."""
        return self._ingest.status()

    def close(self) -> None:
        """Stop it, wait for that, and raise why it failed, if it did."""
        super().close()
        self._ingest.close()
        self.result()
