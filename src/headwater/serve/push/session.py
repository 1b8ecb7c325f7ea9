"""One client that follows a feed: where it begins, how it catches up, and how it goes on live.

Invariant: the ids that a client gets, one after the other, leave out nothing and repeat nothing of what its
filter takes; so whichever it names when it comes back, it goes on right after it. Rows of a snapshot carry no
id: who loses the connection among them begins with a new snapshot.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

import orjson
from anyio import to_thread

from headwater.errors import HeadwaterError, OffsetLost
from headwater.serve.http.problem import status_of, tellable
from headwater.serve.push.feed import FeedChunk, Offsets, PushFeed, PushSnapshot
from headwater.serve.push.filters import PushFilter
from headwater.serve.push.hub import Hub
from headwater.serve.push.live_push import LivePush
from headwater.serve.push.snapshot_memory import SnapshotLease, SnapshotMemoryFull
from headwater.serve.push.subscriber import Subscriber
from headwater.serve.push.wire import Wire

Write = Callable[[Sequence[bytes]], Awaitable[None]]
T = TypeVar("T")
_RETRY_SECONDS = 0.2
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class PushRequest:
    """What a client asks for."""

    feed: PushFeed
    filter: PushFilter
    since: str | None = None
    """The last id it has had, or where to begin; from now on if None."""
    snapshot: bool = False
    """Whether it wants the rows as they are first."""


class PushSession:
    """Follows for one client until that is gone, is behind, or what it follows is."""

    def __init__(self, push: LivePush, request: PushRequest, wire: Wire, write: Write):
        self._push, self._request, self._wire, self._write = push, request, wire, write
        self._feed, self._filter = request.feed, request.filter
        self._unchecked: Offsets | None = None
        """Where the client says that it is, until that was found to be there."""

    async def run(self) -> None:
        """Write events until the end; the last one says why, unless the server itself ends."""
        offsets: Offsets | None = None
        try:
            while not self._push.closed:
                async with self._push.hub(self._feed) as hub:
                    offsets = await self._begin(hub) if offsets is None else offsets
                    offsets = None if offsets is None else await self._follow(hub, offsets)
                if offsets is None:
                    return
        except HeadwaterError as error:
            await self._event("failed", problem(error))
        except OSError:  # the client is gone
            return
        except Exception:
            _log.exception("a client of %s cannot be served", self._feed.name)
            await self._event("failed", {"title": "the server has failed", "status": 500})

    async def _begin(self, hub: Hub) -> Offsets | None:
        """Return where the client begins; None where it cannot."""
        since = self._request.since
        if since is None and not self._request.snapshot:
            await self._announce(hub.offsets)
            return hub.offsets
        try:
            if since is None:
                return await self._snapshot()
            self._unchecked = await self._thread(lambda: self._feed.resolve(since))
            return self._unchecked
        except OffsetLost as error:
            return await self._begin_anew(error, None)

    async def _follow(self, hub: Hub, offsets: Offsets) -> Offsets | None:
        """Catch up, then follow live; return where to go on if the hub ends, None if the client is done."""
        subscriber = Subscriber(self._feed, self._filter, self._wire, self._push.limit)
        try:
            while self._unchecked is not None or not hub.join(subscriber, offsets):
                if hub.failed:
                    return await self._pause(offsets)
                offsets = await self._catch_up(offsets)
        except OffsetLost as error:
            return await self._begin_anew(error, offsets)
        try:
            while frames := await subscriber.take():
                await self._write(frames)
        finally:
            hub.leave(subscriber)
        if subscriber.behind:
            await self._event("behind", _BEHIND)
            return None
        return await self._pause(subscriber.offsets)

    async def _pause(self, offsets: Offsets) -> Offsets:
        """Give what has cut off the hub a moment."""
        await asyncio.sleep(0 if self._push.closed else _RETRY_SECONDS)
        return offsets

    async def _catch_up(self, offsets: Offsets) -> Offsets:
        """Write what there is after a position, and return how far that was."""
        reading = self._feed.read(offsets, self._filter)
        try:
            while (chunk := await self._thread(lambda: next(reading, None))) is not None:
                await self._announce_unchecked()
                offsets = chunk.offsets
                await self._write(self._frames(chunk))
                if self._push.closed:
                    break
        finally:
            reading.close()  # type: ignore[attr-defined]  # it is a generator
        await self._announce_unchecked()
        return offsets

    async def _announce_unchecked(self) -> None:
        if self._unchecked is not None:
            offsets, self._unchecked = self._unchecked, None
            await self._announce(offsets)

    def _frames(self, chunk: FeedChunk) -> Sequence[bytes]:
        seen = ((item, item.data(self._filter)) for item in chunk.items)
        events = [self._wire.event(self._feed.event, data, item.id) for item, data in seen if data]
        end = self._feed.id(chunk.offsets)
        if not chunk.items or chunk.items[-1].id != end:  # a filter has left out the end, which is passed
            events.append(self._wire.progress(end))
        return self._wire.frames(events)

    async def _begin_anew(self, error: OffsetLost, offsets: Offsets | None) -> Offsets | None:
        """Tell what was lost, and go on with the rows as they are now, if those are wanted."""
        self._unchecked, since = None, offsets
        if since is None and self._request.since is not None and self._request.since.isdecimal():
            since = {0: int(self._request.since)}
        rebuilt = since is not None and await self._thread(lambda: self._feed.rebuilt_since(since))
        if not rebuilt:
            await self._event("lost", {**problem(error), "missed": error.missed, "earliest": error.earliest})
            return await self._snapshot() if self._request.snapshot else None
        newest = await self._thread(self._feed.newest)
        id = None if self._request.snapshot else self._feed.id(newest)
        await self._event("rebuilt", self._feed.about(newest), id)
        return await self._snapshot() if self._request.snapshot else newest

    async def _snapshot(self) -> Offsets | None:
        """Write the rows as they are; None if the client is to come again for them."""
        with self._push.snapshots.lease() as lease:
            taken = await self._taken(lease)
            if taken is None:
                await self._event("busy", _BUSY)
                return None
            await self._event("snapshot", self._feed.about(taken.offsets))
            while (rows := await self._thread(lambda: next(taken.rows, None))) is not None:
                await self._write(self._wire.frames([self._wire.event("row", row) for row in rows]))
                if lease.overdue:
                    await self._event("behind", _SLOW_SNAPSHOT)
                    return None
        await self._announce(taken.offsets)
        return taken.offsets

    async def _taken(self, lease: SnapshotLease) -> PushSnapshot | None:
        """Read the rows of a snapshot when there is room for them; None if there is none for long."""
        while True:
            with suppress(SnapshotMemoryFull):
                return await self._thread(lambda: self._feed.snapshot(self._filter, lease.take))
            if not await lease.wait():
                return None

    async def _announce(self, offsets: Offsets) -> None:
        await self._event("ready", self._feed.about(offsets), self._feed.id(offsets))

    async def _event(self, name: str, data: dict[str, Any], id: str | None = None) -> None:
        await self._write(self._wire.frames([self._wire.event(name, orjson.dumps(data), id)]))

    async def _thread(self, work: Callable[[], T]) -> T:
        return await to_thread.run_sync(work)


_BEHIND = {
    "title": "this client takes events more slowly than they come",
    "hint": "follow again from the last id: nothing is lost",
}

_SLOW_SNAPSHOT = {
    "title": "this client takes its rows more slowly than others can wait for the memory that they hold",
    "hint": "begin again, with fewer rows: by key= or where=",
}
_BUSY = {
    "title": "too many clients begin with their rows at this moment",
    "hint": "come again after a second",
}


def problem(error: HeadwaterError) -> dict[str, Any]:
    """Return what a client is told of an error."""
    error = tellable(error)
    told = {"title": error.message, "status": status_of(error), "detail": error.detail, "hint": error.hint}
    return {name: text for name, text in told.items() if text is not None}
