"""What lies between two offsets, told without reading it: for those who plan reads and keep time.

Invariant: the appended ranges of a partition, from an offset on, cover every offset up to its end once;
marks lie between them and cover none.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class AppendedRange:
    """Records of one producer that were appended together, or a producer's mark."""

    partition: int
    base: int
    end: int
    """The offset after its last record; ``base`` for a mark."""
    producer: str
    received: int
    """When the log received its last record."""
    newest: int | None
    """The newest event time in it; for a mark, the time before which the producer sends no more."""
    mark: bool = False
    first: int | None = None
    """When the log received its first record, where that was earlier."""

    @property
    def began(self) -> int:
        """When the log began to receive it."""
        return self.received if self.first is None else self.first
