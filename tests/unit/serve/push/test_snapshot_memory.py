"""What all snapshots hold together is bounded: who finds no room waits, and none waits for ever."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from headwater.serve.push.filters import PushFilter
from headwater.serve.push.live_push import LivePush
from headwater.serve.push.session import PushRequest, PushSession
from headwater.serve.push.snapshot_memory import SnapshotMemory, SnapshotMemoryFull
from headwater.serve.push.wire import WEBSOCKET
from memory_feed import MemoryFeed


def test_a_snapshot_has_room_beside_others_within_the_bound_and_alone_in_any_case() -> None:
    memory = SnapshotMemory(limit=100)
    with memory.lease() as large:
        large.take(80)
        large.take(80)
        with memory.lease() as small, pytest.raises(SnapshotMemoryFull):
            small.take(1)
    assert memory.used == 0


def test_who_reads_on_after_its_client_is_gone_counts_for_nothing() -> None:
    memory = SnapshotMemory(limit=100)
    with memory.lease() as lease:
        lease.take(50)
    with pytest.raises(SnapshotMemoryFull):
        lease.take(50)
    assert memory.used == 0


class Follower:
    """A client that notes the names of its events, and how much all snapshots hold at each."""

    def __init__(self, push: LivePush, feed: MemoryFeed, pause: float = 0.0):
        self.names: list[str] = []
        self.most = 0
        self._push, self._pause = push, pause
        self._request = PushRequest(feed, PushFilter(), snapshot=True)

    async def run(self) -> None:
        await PushSession(self._push, self._request, WEBSOCKET, self._write).run()

    async def until(self, name: str) -> None:
        task = asyncio.create_task(self.run())
        async with asyncio.timeout(10):
            while name not in self.names and not task.done():
                await asyncio.sleep(0.001)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    async def _write(self, frames: Sequence[bytes]) -> None:
        self.names += [frame.decode().split('"')[3] for frame in frames]
        self.most = max(self.most, self._push.snapshots.used)
        await asyncio.sleep(self._pause)


def sixty() -> MemoryFeed:
    """Return a feed whose rows count as sixty bytes."""
    feed = MemoryFeed(1)
    feed.append(0, 60)
    return feed


def test_clients_that_begin_at_once_wait_for_each_other_and_all_get_their_rows() -> None:
    async def scenario() -> None:
        push, feed = LivePush(snapshots=SnapshotMemory(limit=100)), sixty()
        followers = [Follower(push, feed) for _ in range(8)]
        await asyncio.gather(*(each.until("ready") for each in followers))
        assert all(each.names == ["snapshot", *["row"] * 60, "ready"] for each in followers)
        assert max(each.most for each in followers) == 60
        assert (push.snapshots.used, push.snapshots.waiting) == (0, 0)

    asyncio.run(scenario())


def test_who_waits_too_long_for_room_is_told_to_come_again() -> None:
    async def scenario() -> None:
        push = LivePush(snapshots=SnapshotMemory(limit=100, wait=0.05))
        follower = Follower(push, sixty())
        with push.snapshots.lease() as other:
            other.take(90)
            await follower.run()
        assert follower.names == ["busy"] and push.snapshots.used == 0

    asyncio.run(scenario())


def test_who_is_slow_to_take_its_rows_makes_way_for_those_who_wait() -> None:
    async def scenario() -> None:
        push, feed = LivePush(snapshots=SnapshotMemory(limit=100, hold=0.01)), sixty()
        slow, quick = Follower(push, feed, pause=0.05), Follower(push, feed)
        taking = asyncio.create_task(slow.run())
        while not push.snapshots.used:
            await asyncio.sleep(0.001)
        await quick.until("ready")
        await taking
        assert slow.names[-1] == "behind" and quick.names[-1] == "ready"

    asyncio.run(scenario())


def test_who_is_slow_and_keeps_nobody_waiting_gets_all_rows() -> None:
    async def scenario() -> None:
        push = LivePush(snapshots=SnapshotMemory(limit=100, hold=0.0))
        slow = Follower(push, sixty(), pause=0.01)
        await slow.until("ready")
        assert slow.names[-1] == "ready"

    asyncio.run(scenario())
