"""The queue of one client that follows live: bounded, and nobody waits for it.

Invariant: what is taken from the queue is what was offered, whole and in order, up to the moment at which it
was too much; from then on nothing more is taken in, and the client is told that it is behind.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence

from headwater.serve.push.feed import FeedChunk, Offsets, PushFeed, farther
from headwater.serve.push.filters import PushFilter
from headwater.serve.push.wire import Wire

LIMIT = 1 << 20
"""Bytes that may wait for a client."""


class Subscriber:
    """A client's place in the fan-out; everything here happens on the event loop."""

    def __init__(self, feed: PushFeed, filter: PushFilter, wire: Wire, limit: int = LIMIT):
        self.filter, self.wire = filter, wire
        self.offsets: Offsets = {}
        """How far everything has been offered to it."""
        self.behind = False
        self._feed, self._limit = feed, limit
        self._queue: deque[bytes] = deque()
        self._size, self._ended = 0, False
        self._waiting = asyncio.Event()

    def offer(self, frames: Sequence[bytes], size: int) -> bool:
        """Add to the queue; False if that would be too much, and the client is behind from now on.

        A piece that is more than the limit by itself is taken if nothing else waits.
        """
        if self._queue and self._size + size > self._limit:
            self.behind = True
            self.end()
            return False
        self._queue.extend(frames)
        self._size += size
        self._waiting.set()
        return True

    def own_frames(self, chunk: FeedChunk) -> tuple[bytes, ...]:
        """Return what it has not had of a chunk, with ids that say how far it is itself.

        It has read ahead of the live reader in some partitions: the reader's ids would lead it back.
        """
        at, events = dict(self.offsets), []
        for item in chunk.items:
            if item.reached > at.get(item.partition, 0):
                at[item.partition] = item.reached
                data = item.data(self.filter)
                if data is not None:
                    events.append(self.wire.event(self._feed.event, data, self._feed.id(at)))
        self.offsets = farther(at, chunk.offsets)
        return self.wire.frames(events)

    def end(self) -> None:
        """Let ``take`` end when the queue is empty."""
        self._ended = True
        self._waiting.set()

    async def take(self) -> list[bytes]:
        """Return all that waits, when there is something; nothing at the end."""
        while not self._queue:
            if self._ended:
                return []
            self._waiting.clear()
            await self._waiting.wait()
        frames, self._size = list(self._queue), 0
        self._queue.clear()
        return frames
