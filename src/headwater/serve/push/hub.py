"""The live reader of one view or topic: each change is read and encoded once, and handed to all who follow.

A thread waits for commits and reads; what it has read is given to the subscribers' queues on the event loop.
Invariant: a subscriber that joins at its position gets every item after it once, in the order of its
partition, until it leaves or is told that it is behind or cut off.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from concurrent.futures import Future

from anyio import to_thread

from headwater.errors import HeadwaterError, LogRefused, LogUnavailable, SinkRefused, SinkUnavailable
from headwater.serve.push.feed import FeedChunk, Offsets, PushFeed, passed
from headwater.serve.push.filters import PushFilter
from headwater.serve.push.subscriber import Subscriber
from headwater.serve.push.wire import Wire

HEARTBEAT_SECONDS = 15.0
_RETRY_SECONDS = 1.0
_log = logging.getLogger(__name__)


class Hub:
    """Reads a feed as it grows, for all who follow it."""

    def __init__(self, feed: PushFeed, heartbeat: float = HEARTBEAT_SECONDS):
        self.feed, self.failed = feed, False
        self.offsets: Offsets = {}
        """How far everything has been handed to the subscribers."""
        self._subscribers: set[Subscriber] = set()
        self._stop, self._heartbeat = threading.Event(), heartbeat
        self._thread: threading.Thread | None = None
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Begin to read, from now on."""
        self._loop = asyncio.get_running_loop()
        self.offsets = await to_thread.run_sync(self.feed.newest)
        if self._stop.is_set():  # all who wanted it have gone meanwhile
            return
        self._thread = threading.Thread(target=self._read, name=f"follow {self.feed.name}", daemon=True)
        self._thread.start()
        self._tasks = [asyncio.create_task(self._send_heartbeats())]

    def stop(self) -> None:
        """Read no more; the thread ends within a second."""
        self._stop.set()
        for task in self._tasks:
            task.cancel()
        self._cut_off()

    def wait(self) -> None:
        """Return when the thread has ended."""
        if self._thread is not None:
            self._thread.join()

    def join(self, subscriber: Subscriber, offsets: Offsets) -> bool:
        """Let a subscriber follow from its position on; False if the reader is past it, or has ended."""
        if self.failed or not passed(offsets, self.offsets):
            return False
        subscriber.offsets = self.offsets if dict(offsets) == dict(self.offsets) else offsets
        self._subscribers.add(subscriber)
        return True

    def leave(self, subscriber: Subscriber) -> None:
        """Hand over no more to a subscriber."""
        self._subscribers.discard(subscriber)

    def publish(self, chunk: FeedChunk) -> None:
        """Hand a chunk to all subscribers; it is encoded once for all who see the same of it."""
        before, self.offsets = self.offsets, chunk.offsets
        shared: dict[tuple[PushFilter, Wire], tuple[tuple[bytes, ...], int]] = {}
        for subscriber in list(self._subscribers):
            if subscriber.offsets is before:
                what = (subscriber.filter, subscriber.wire)
                if what not in shared:
                    shared[what] = _sized(self._frames(chunk, *what))
                frames, size = shared[what]
                subscriber.offsets = chunk.offsets
            else:
                frames, size = _sized(subscriber.own_frames(chunk))
                if dict(subscriber.offsets) == dict(chunk.offsets):
                    subscriber.offsets = chunk.offsets
            self._offer(subscriber, frames, size)

    def _frames(self, chunk: FeedChunk, filter: PushFilter, wire: Wire) -> tuple[bytes, ...]:
        seen = ((item, item.data(filter)) for item in chunk.items)
        return wire.frames([wire.event(self.feed.event, data, item.id) for item, data in seen if data])

    def _offer(self, subscriber: Subscriber, frames: tuple[bytes, ...], size: int) -> None:
        if frames and not subscriber.offer(frames, size):
            self.leave(subscriber)

    async def _send_heartbeats(self) -> None:
        while True:
            await asyncio.sleep(self._heartbeat)
            for subscriber in list(self._subscribers):
                sign = subscriber.wire.progress(self.feed.id(subscriber.offsets))
                self._offer(subscriber, (sign,), len(sign))

    # In the thread

    def _read(self) -> None:
        reached, away = self.offsets, False
        while not self._stop.is_set():
            try:
                for chunk in self.feed.follow(reached, self._stop):
                    if not self._hand_over(chunk):
                        return None
                    reached = chunk.offsets
                    away = False
            except (LogRefused, SinkRefused):
                return self._fail()
            except (LogUnavailable, SinkUnavailable) as error:
                if not away:
                    _log.warning("%s waits: %s", self.feed.name, error.message)
                away = True
                self._stop.wait(_RETRY_SECONDS)
            except HeadwaterError:
                return self._fail()
            except Exception:
                _log.exception("%s cannot be followed", self.feed.name)
                return self._fail()
        return None

    def _hand_over(self, chunk: FeedChunk) -> bool:
        """Publish on the event loop, and wait until that is done: nothing piles up between the two."""
        published: Future[None] = Future()

        def publish() -> None:
            try:
                self.publish(chunk)
            finally:
                published.set_result(None)

        try:
            self._loop.call_soon_threadsafe(publish)
        except RuntimeError:  # the loop is closed
            return False
        while not self._stop.is_set():
            try:
                published.result(_RETRY_SECONDS)
                return True
            except TimeoutError:
                continue
        return False

    def _fail(self) -> None:
        """Cut all off: each finds out by itself, where it is, what that means for it."""
        try:
            self._loop.call_soon_threadsafe(self._cut_off)
        except RuntimeError:
            return

    def _cut_off(self) -> None:
        self.failed = True
        for subscriber in list(self._subscribers):
            subscriber.end()
        self._subscribers.clear()


def _sized(frames: tuple[bytes, ...]) -> tuple[tuple[bytes, ...], int]:
    return frames, sum(map(len, frames))
