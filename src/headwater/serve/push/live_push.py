"""The hubs of a server: one for each view or topic that somebody follows, as long as anybody does.

Invariant: there is at most one living hub for a feed; a hub that has failed is replaced by the next who asks.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from headwater.serve.push.feed import PushFeed
from headwater.serve.push.hub import HEARTBEAT_SECONDS, Hub
from headwater.serve.push.snapshot_memory import SnapshotMemory
from headwater.serve.push.subscriber import LIMIT


class _Shared:
    """A hub and how many use it."""

    def __init__(self, feed: PushFeed, heartbeat: float):
        self.hub, self.users = Hub(feed, heartbeat), 0
        self.started = asyncio.ensure_future(self.hub.start())


class LivePush:
    """All that is followed on one server."""

    def __init__(
        self,
        heartbeat: float = HEARTBEAT_SECONDS,
        limit: int = LIMIT,
        snapshots: SnapshotMemory | None = None,
    ):
        self.limit = limit
        """Bytes that may wait for one client."""
        self.snapshots = snapshots or SnapshotMemory()
        """What the rows that clients begin with hold."""
        self._heartbeat, self._closed = heartbeat, False
        self._shared: dict[str, _Shared] = {}
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def closed(self) -> bool:
        """Whether the server is ending."""
        return self._closed

    @asynccontextmanager
    async def hub(self, feed: PushFeed) -> AsyncIterator[Hub]:
        """Lend the hub of a feed, which is started if nobody uses it yet."""
        self._loop = asyncio.get_running_loop()
        shared = self._shared.get(feed.name)
        if shared is None or shared.hub.failed:
            shared = self._shared[feed.name] = _Shared(feed, self._heartbeat)
        shared.users += 1
        try:
            await asyncio.shield(shared.started)
            yield shared.hub
        finally:
            self._give_back(feed.name, shared)

    def close(self) -> None:
        """End what everybody follows; may be called from any thread."""
        self._closed = True
        if self._loop is not None and not self._loop.is_closed():
            for shared in list(self._shared.values()):
                self._loop.call_soon_threadsafe(shared.hub.stop)

    def _give_back(self, name: str, shared: _Shared) -> None:
        shared.users -= 1
        if not shared.users:
            shared.hub.stop()
            if self._shared.get(name) is shared:
                del self._shared[name]
