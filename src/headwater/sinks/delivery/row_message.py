"""Messages to people: each row is one of its own, and what is sent is what was made of it.

Invariant: a deletion says nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from headwater.sinks.delivery.delivery import Kind
from headwater.values.fitting import Fitted


class MessagePerRow(ABC):
    """Makes a message of each row; a composer lacks the summary of many only."""

    @abstractmethod
    def message(self, row: dict[str, Any]) -> bytes:
        """Return what a row says."""

    def payloads(self, fitted: Fitted) -> list[bytes | None]:
        """Return the message of each row, and nothing for a deletion."""
        # A row at a time: people read them one by one.
        rows = zip(fitted.rows.to_pylist(), fitted.deleted.tolist(), strict=True)
        return [None if gone else self.message(row) for row, gone in rows]

    def body(self, kind: Kind, payload: bytes, made: float) -> bytes:
        """Return the message as it is."""
        return payload
