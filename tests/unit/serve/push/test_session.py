"""Clients that come and go while a feed grows: each gets everything once, in order, whatever happens when."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from headwater.errors import SinkUnavailable
from headwater.serve.push.filters import PushFilter
from headwater.serve.push.live_push import LivePush
from headwater.serve.push.session import PushRequest, PushSession
from headwater.serve.push.wire import SSE, WEBSOCKET, Wire
from memory_feed import MemoryFeed
from soaking import examples

PARTITIONS = 3
Plan = tuple[tuple[int, ...], bool, Wire, list[int]]
"""The filter, whether with a snapshot, by which wire, and the pieces of a client."""
WIRES = st.sampled_from([SSE, WEBSOCKET])
REMAINDERS = st.sampled_from([(), (), (0,), (1,)])


@dataclass
class Client:
    """Follows through any number of connections, and notes every number that it was given."""

    feed: MemoryFeed
    push: LivePush
    wire: Wire
    key: tuple[int, ...]
    snapshot: bool
    pieces: list[int]
    """How many pieces each connection takes before it breaks; the last one holds."""
    numbers: list[tuple[int, int]] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    last: str | None = None

    async def run(self) -> None:
        while True:
            left = self.pieces.pop(0) if self.pieces else 1_000_000
            await self._connect(left)
            await asyncio.sleep(0)

    async def _connect(self, left: int) -> None:
        since = self.last or (None if self.snapshot else self.feed.id(dict.fromkeys(range(PARTITIONS), 0)))
        if since is None:
            self.numbers.clear()  # a snapshot that was broken off is begun anew

        async def write(frames: Sequence[bytes]) -> None:
            nonlocal left
            for frame in frames:
                if not left:
                    raise ConnectionResetError
                left -= 1
                self._note(frame)
                await asyncio.sleep(0)

        request = PushRequest(self.feed, PushFilter(self.key), since, self.snapshot)
        await PushSession(self.push, request, self.wire, write).run()

    def _note(self, frame: bytes) -> None:
        for event, data, id in received(frame, self.wire):
            self.names += [event] if event else []
            if event in ("row", "number"):
                self.numbers.append((data[0], data[1]))
            self.last = id or self.last

    def wanted(self) -> list[tuple[int, int]]:
        ends = self.feed.ends
        return [(p, n) for p in ends for n in range(ends[p]) if not self.key or n % 3 == self.key[0]]


def received(frame: bytes, wire: Wire) -> list[tuple[str | None, list[int], str | None]]:
    """Return the events of what was written: name, data, id."""
    if wire is WEBSOCKET:
        message = json.loads(frame)
        return [(message["event"], message.get("data"), message["id"])]
    found = []
    for text in frame.decode().split("\n\n")[:-1]:
        lines = dict(line.split(": ", 1) for line in text.split("\n"))
        found.append((lines.get("event"), json.loads(lines.get("data", "[]")), lines.get("id")))
    return found


def in_order(numbers: list[tuple[int, int]]) -> bool:
    return all([n for p, n in numbers if p == each] == sorted({n for p, n in numbers if p == each})
               for each in range(PARTITIONS))  # fmt: skip


@st.composite
def plans(draw: st.DrawFn) -> list[Plan]:
    pieces = st.lists(st.integers(1, 6), max_size=4)
    return draw(st.lists(st.tuples(REMAINDERS, st.booleans(), WIRES, pieces), min_size=1, max_size=5))


@examples(25)
@given(
    plans=plans(),
    appends=st.lists(st.tuples(st.integers(0, 2), st.integers(1, 9), st.integers(0, 4)), max_size=25),
    limit=st.sampled_from([40, 200, 1 << 20]),
    late=st.integers(0, 20),
    surprises=st.lists(
        st.tuples(st.integers(0, 2), st.integers(1, 5), st.sampled_from([0, 0.003])), max_size=12
    ),
    delays=st.lists(st.sampled_from([0, 0.002, 0.005]), max_size=12),
)
def test_each_client_gets_everything_once_and_in_order(
    plans: list[Plan],
    appends: list[tuple[int, int, int]],
    limit: int,
    late: int,
    surprises: list[tuple[int, int, float]],
    delays: list[float],
) -> None:
    async def scenario() -> None:
        feed, push = MemoryFeed(PARTITIONS), LivePush(heartbeat=0.005, limit=limit)
        feed.surprises, feed.delays = list(surprises), list(delays)
        clients = [
            # A snapshot of the memory feed takes no filter, so who asks for one has none.
            Client(feed, push, wire, () if snapshot else key, snapshot, list(pieces))
            for key, snapshot, wire, pieces in plans
        ]
        tasks = []
        for number, (partition, count, pauses) in enumerate([*appends, (0, 1, 0)]):
            if number == min(late, len(appends)):
                tasks = [asyncio.create_task(client.run()) for client in clients]
            feed.append(partition, count)
            for _ in range(pauses):
                await asyncio.sleep(0)
        for _ in range(40 if tasks else 0):
            await asyncio.sleep(0.002 if feed.surprises else 0)
        feed.surprises.clear()
        await asyncio.sleep(0.01)  # one may be under way
        async with asyncio.timeout(10):
            while any(len(client.numbers) < len(client.wanted()) for client in clients):
                await asyncio.sleep(0.002)
        await asyncio.sleep(0.01)  # what comes twice would come now
        push.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for client in clients:
            assert in_order(client.numbers), client
            assert sorted(client.numbers) == client.wanted()

    asyncio.run(scenario())


def test_what_is_no_longer_there_is_told_and_the_session_ends() -> None:
    async def scenario() -> list[str | None]:
        feed, push = MemoryFeed(1), LivePush()
        feed.append(0, 10)
        feed.earliest[0] = 5
        seen: list[str | None] = []

        async def write(frames: Sequence[bytes]) -> None:
            seen.extend(event for frame in frames for event, _, _ in received(frame, SSE))

        await PushSession(push, PushRequest(feed, PushFilter(), "0=2"), SSE, write).run()
        return seen

    assert asyncio.run(scenario()) == ["lost"]


def test_what_names_servers_is_kept_from_clients() -> None:
    class LostFeed(MemoryFeed):
        def newest(self) -> dict[int, int]:
            raise SinkUnavailable("cannot reach db.internal")

    async def scenario() -> bytes:
        written: list[bytes] = []

        async def write(frames: Sequence[bytes]) -> None:
            written.extend(frames)

        await PushSession(LivePush(), PushRequest(LostFeed(1), PushFilter()), SSE, write).run()
        return b"".join(written)

    told = asyncio.run(scenario())
    assert b"event: failed" in told and b'"status":503' in told and b"internal" not in told
