"""A sink that brings along what it was made from: a store, a log.

Invariant: what it was made from is closed with it, and not before.
"""

from __future__ import annotations

from headwater.closing import Closing
from headwater.sinks.sink import Batch, Sink


class Together(Sink):
    """A sink, closed together with what it was made from."""

    def __init__(self, sink: Sink, *made_from: Closing):
        self._sink, self._made_from = sink, made_from

    def begin(self) -> int:
        """Take over from any other runner."""
        return self._sink.begin()

    def commit(self, batch: Batch) -> bool:
        """Make a batch visible."""
        return self._sink.commit(batch)

    def receipt(self) -> str:
        """Return what tells later whether all is there."""
        return self._sink.receipt()

    def lost(self, receipt: str) -> str | None:
        """Tell what is lost."""
        return self._sink.lost(receipt)

    def close(self) -> None:
        """Close everything."""
        for each in (self._sink, *self._made_from):
            each.close()
