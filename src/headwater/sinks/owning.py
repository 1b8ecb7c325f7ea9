"""A sink that owns what it writes through: a store, a log.

Invariant: what it owns is closed after it, and not before.
"""

from __future__ import annotations

from headwater.closing import Closing
from headwater.sinks.sink import Batch, Contents, Sink


class OwningSink(Sink):
    """A sink that closes its resources when it is closed."""

    def __init__(self, sink: Sink, *resources: Closing):
        self._sink, self._resources = sink, resources

    def begin(self) -> int:
        """Take over from any other runner."""
        return self._sink.begin()

    def commit(self, batch: Batch) -> bool:
        """Make a batch visible."""
        return self._sink.commit(batch)

    def receipt(self) -> str:
        """Return what tells later whether anything is missing."""
        return self._sink.receipt()

    def resume(self, receipt: str) -> str | None:
        """Tell what is missing."""
        return self._sink.resume(receipt)

    def read_back(self) -> Contents | None:
        """Return what the target holds."""
        return self._sink.read_back()

    def close(self) -> None:
        """Close everything."""
        for resource in (self._sink, *self._resources):
            resource.close()
