"""How much of a producer's records is on its way at once: about what the broker takes in half a second.

A record that waits for long in the client times out there, and a transaction that is open for long is aborted
by the broker. So a large batch goes out in pieces, the next one while the one before is being taken.

Invariant: whatever the connection, what is on its way is small against the time that it may take; a record
that is larger than a piece is a piece of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from headwater.log.kafka.outgoing import OutgoingMessage

FIRST = 256 << 10
"""Bytes of the first piece, when nothing is known of the connection: half a minute at 10 kB a second."""
LEAST = 16 << 10
MOST = 32 << 20
SECONDS = 0.5
GROWTH = 4


class Pace:
    """The size of the next piece, by how long the ones before took."""

    def __init__(self) -> None:
        self._size = FIRST

    def pieces(
        self, messages: Sequence[OutgoingMessage], first: int = 0
    ) -> Iterator[Sequence[OutgoingMessage]]:
        """Yield the messages from an index on, in pieces; each is as large as the pace is then."""
        while first < len(messages):
            last, left = first + 1, self._size - size(messages[first])
            while last < len(messages) and (left := left - size(messages[last])) >= 0:
                last += 1
            yield messages[first:last]
            first = last

    def took(self, piece: Sequence[OutgoingMessage], seconds: float) -> None:
        """Take in how long a piece took."""
        wanted = int(sum(map(size, piece)) * SECONDS / max(seconds, 1e-6))
        self._size = min(max(wanted, LEAST), self._size * GROWTH, MOST)

    def begin_anew(self) -> None:
        """Forget what was measured: the connection has failed."""
        self._size = FIRST


def size(message: OutgoingMessage) -> int:
    """Return about how many bytes a message has."""
    return len(message.value or b"") + len(message.key or b"") + 64
