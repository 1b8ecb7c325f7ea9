"""Receives a feed: records in the order of their offsets, and none of them missing, however lossy the network
is.

What arrives out of order waits for a moment; what does not come by then, and what was only pointed to, is
fetched from the log, which is the truth. Heartbeats tell how far there is something, and when nothing comes
at all the log is asked. Invariant: what comes out of a partition is what the log has there, from the start
on, each record once.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from headwater.closing import Closing
from headwater.ingest.address import bound_host_port, parse_host_port
from headwater.ingest.datagrams import DatagramReader
from headwater.ingest.feed.multicast import receiving_socket
from headwater.ingest.feed.wire import HEARTBEAT, RECORDS, FeedDatagram, decode, topic_mark
from headwater.ingest.status import IngestCounts
from headwater.log import Log, Position, Start
from headwater.record import META
from headwater.values import jsonl

REORDER_SECONDS = 0.02
"""How long something that is missing may still be on its way."""
SILENCE_SECONDS = 1.0
"""How long nothing may come before the log is asked."""
WAITING = 10_000
"""Datagrams of a partition that wait for what is missing; with more, all of it is fetched."""
PLACE = ("_partition", "_offset")


@dataclass
class _PartitionState:
    """How far a partition was given out, and what waits behind a gap."""

    next: int
    end: int
    """As far as is known that there is something."""
    waiting: list[tuple[int, int, bytes]] = field(default_factory=list)
    missing_since: float | None = None


class Feed(Closing):
    """Receives what ``headwater feed`` sends, and fetches what is lost.

    - ``log``: the open log, from which what is missing is fetched.
    - ``topic``: its name.
    - ``address``: ``"239.0.0.1:5000"``, as the sender has it.
    - ``start="latest"``: where to begin; a ``position`` of before goes on there.
    - ``interface=None``: the address of the network interface on which the group is joined.

    Batches have the topic's columns, ``_partition`` and ``_offset``, and keep the order of each partition.

    >>> import headwater
    >>> log = headwater.open("memory:")
    >>> _ = log.create_topic("orders", "id BIGINT")
    >>> with Feed(log, "orders", "127.0.0.1:0") as feed, log.producer("orders") as producer:
    ...     producer.send({"id": 1})
    ...     _ = producer.flush()
    ...     print([batch.to_pylist() for batch in feed.poll(timeout=2.0)])
    [[{'id': 1, '_partition': 0, '_offset': 0}]]
    """

    def __init__(
        self, log: Log, topic: str, address: str, *, start: Start = "latest", interface: str | None = None
    ):
        self._log, self._topic = log, log.topic(topic)
        self._mark = topic_mark(self._topic.id)
        offsets = log.resolve(topic, start).offsets
        self._states = {number: _PartitionState(offset, offset) for number, offset in offsets.items()}
        opened = receiving_socket(parse_host_port(address), interface)
        self.address = str(bound_host_port(opened))
        self._reader = DatagramReader(opened)
        self._heard = time.monotonic()
        self._asks = start != "latest"  # what is there already is not sent again
        self.counts = IngestCounts()
        """``datagrams``; ``received`` and ``fetched`` records; ``foreign``: datagrams that are damaged or
        another's."""

    @property
    def position(self) -> Position:
        """Up to where records were given out."""
        offsets = {number: state.next for number, state in self._states.items()}
        return Position(self._topic.name, offsets, self._topic.id)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Yield batches for ever."""
        while True:
            yield from self.poll(1.0)

    def poll(self, timeout: float) -> list[pa.RecordBatch]:
        """Return what has come, after some seconds at the most; nothing then is no batch.

        - ``timeout``: the seconds.
        """
        until = time.monotonic() + timeout
        while True:
            self._receive(min(REORDER_SECONDS, max(until - time.monotonic(), 0)))
            if self._asks or time.monotonic() - self._heard >= SILENCE_SECONDS:
                self._ask()
            batches = [
                batch for number, state in self._states.items() for batch in self._given(number, state)
            ]
            if batches or time.monotonic() >= until:
                return batches

    def close(self) -> None:
        """Leave the group."""
        self._reader.close()

    def _receive(self, seconds: float) -> None:
        if not self._reader.wait(seconds):
            return
        for data in self._reader.receive():  # each has a header of its own, and its place in the order
            self.counts.add(datagrams=1)
            found = decode(bytes(data), self._mark)
            if found is None:
                self.counts.add(foreign=1)
            else:
                self._heard = time.monotonic()
                self._take(found)

    def _take(self, found: FeedDatagram) -> None:
        state = self._states.get(found.partition)
        if state is None:  # one that was added since, if the log has it
            self._asks = True
            return
        state.end = max(state.end, found.end)
        if found.kind == RECORDS and found.end > state.next:
            heapq.heappush(state.waiting, (found.first, found.end, found.payload))
        if len(state.waiting) > WAITING:
            state.waiting.clear()
        if found.kind != HEARTBEAT and found.kind != RECORDS:
            state.missing_since = state.missing_since or 0.0  # it will not come: no need to wait

    def _ask(self) -> None:
        """Learn from the log itself how far partitions go."""
        for number, offset in self._log.resolve(self._topic.name, "latest").offsets.items():
            state = self._states.setdefault(number, _PartitionState(0, 0))
            state.end = max(state.end, offset)
            state.missing_since = state.missing_since or 0.0
        self._asks, self._heard = False, time.monotonic()

    def _given(self, number: int, state: _PartitionState) -> Iterator[pa.RecordBatch]:
        """Yield what follows, as far as it is there, and fetch what has been missing for too long."""
        while state.next < state.end:
            first, lines = state.next, self._following(state)
            if lines:
                state.missing_since = None
                yield from self._decoded(number, first, lines)
                continue
            now = time.monotonic()
            if state.missing_since is None:
                state.missing_since = now
            if now - state.missing_since < REORDER_SECONDS:
                return
            upto = state.waiting[0][0] if state.waiting else state.end
            yield from self._fetched(number, state, upto)
            state.missing_since = None

    def _following(self, state: _PartitionState) -> list[bytes]:
        """Take the lines that follow without a gap."""
        lines: list[bytes] = []
        while state.waiting and state.waiting[0][0] <= state.next:
            first, end, payload = heapq.heappop(state.waiting)
            if end > state.next:
                lines += payload.split(b"\n")[state.next - first :]
                state.next = end
        return lines

    def _decoded(self, number: int, first: int, lines: list[bytes]) -> Iterator[pa.RecordBatch]:
        declared = replace(self._topic, schemas=(self._topic.read_schema,), computed=())
        batch, bad = jsonl.decode(lines, declared, strict=True)
        if bad:  # written with columns that were added since
            yield from self._read(number, first, first + len(lines))
            return
        self.counts.add(received=len(batch))
        places = (np.full(len(lines), number, np.int32), np.arange(first, first + len(lines)))
        columns = [*batch.columns, *(pa.array(each) for each in places)]
        yield pa.RecordBatch.from_arrays(columns, schema=self._schema())

    def _fetched(self, number: int, state: _PartitionState, upto: int) -> Iterator[pa.RecordBatch]:
        """Read what is missing from the log; no further than it goes, whatever a datagram said."""
        there = self._log.resolve(self._topic.name, "latest").offsets.get(number, 0)
        end = min(upto, there)
        if end > state.next:
            yield from self._read(number, state.next, end)
            state.next = end
        if there < state.end and not state.waiting:
            state.end = max(there, state.next)

    def _read(self, number: int, first: int, end: int) -> Iterator[pa.RecordBatch]:
        name, id = self._topic.name, self._topic.id
        self._topic = self._log.topic(name)  # it may have got columns; if it is another topic, the id tells
        start, stop = Position(name, {number: first}, id), Position(name, {number: end}, id)
        for batch in self._log.read(name, number, start, stop, meta=True):
            self.counts.add(fetched=len(batch))
            yield batch.select([*self._topic.read_schema.names, *PLACE])

    def _schema(self) -> pa.Schema:
        return pa.schema([*self._topic.read_schema, *(pa.field(name, META[name]) for name in PLACE)])
