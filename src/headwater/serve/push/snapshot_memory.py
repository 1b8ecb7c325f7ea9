"""The memory of all snapshots of a server: rows that were read and are on their way to clients.

Each client reads the rows that it begins with at once, so that none holds the store; after a rebuild, all of
them do. Invariant: what snapshots hold together stays within a bound, unless a single one has more. Who finds
no room gives back what it has, waits for others and reads anew; who keeps the others waiting for long is
told to make way.
"""

from __future__ import annotations

import asyncio
import threading
import time
from types import TracebackType

MEMORY_BYTES = 512 << 20
WAIT_SECONDS = 20.0
"""How long a client waits for room, before it is told to come again."""
HOLD_SECONDS = 60.0
"""How long a client may take for its rows while others wait."""


class SnapshotMemoryFull(Exception):
    """There is no room for the rows of a snapshot now."""


class SnapshotMemory:
    """Counts what all snapshots hold; made and waited for on one event loop."""

    def __init__(self, limit: int = MEMORY_BYTES, wait: float = WAIT_SECONDS, hold: float = HOLD_SECONDS):
        self.hold_seconds = hold
        self.used = 0
        """Bytes of rows that snapshots hold."""
        self.waiting = 0
        """How many clients wait for room."""
        self._limit, self._wait_seconds = limit, wait
        self._lock, self._freed = threading.Lock(), asyncio.Event()

    def lease(self) -> SnapshotLease:
        """Begin to count for one snapshot."""
        return SnapshotLease(self)

    def take(self, size: int, held: int) -> None:
        """Count some bytes more for one who holds some; raises if that is too much. In any thread."""
        with self._lock:
            if self.used > held and self.used + size > self._limit:
                raise SnapshotMemoryFull
            self.used += size

    def give_back(self, size: int) -> None:
        """Count some bytes no more."""
        with self._lock:
            self.used -= size
        self._freed.set()

    async def room_for(self, size: int, waited: float) -> bool:
        """Wait until there is room, and tell whether there is; not for ever: some of the time has passed."""
        self.waiting += 1
        try:
            async with asyncio.timeout(self._wait_seconds - waited):
                while self.used and self.used + size > self._limit:
                    self._freed.clear()
                    await self._freed.wait()
        except TimeoutError:
            return False
        finally:
            self.waiting -= 1
        return True


class SnapshotLease:
    """What one snapshot holds, until the block that it is used in ends."""

    def __init__(self, memory: SnapshotMemory):
        self._memory, self._size, self._closed = memory, 0, False
        self._needed, self._waited = 0, 0.0
        self._begun = time.monotonic()
        self._lock = threading.Lock()

    @property
    def overdue(self) -> bool:
        """Whether others wait, and have done so for long enough."""
        held = time.monotonic() - self._begun
        return bool(self._memory.waiting) and held > self._memory.hold_seconds

    def take(self, size: int) -> None:
        """Count rows that were read; raises if there is no room for them. In any thread."""
        with self._lock:  # who reads may be in a thread that nobody waits for any more
            if self._closed:
                raise SnapshotMemoryFull
            self._needed = self._size + size
            self._memory.take(size, self._size)
            self._size += size

    async def wait(self) -> bool:
        """Give back what it has and wait until as much as it needed is free; False if that takes too long."""
        self._give_back()
        began = time.monotonic()
        there = await self._memory.room_for(self._needed, self._waited)
        self._begun = time.monotonic()
        self._waited += self._begun - began
        return there

    def __enter__(self) -> SnapshotLease:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._closed = True
        self._give_back()

    def _give_back(self) -> None:
        with self._lock:
            size, self._size = self._size, 0
        self._memory.give_back(size)
