"""Sends the records of a topic by UDP, as they are appended, and says from time to time how far they go.

Invariant: only what is durable in the log is sent, in the order of each partition; a datagram that the system
does not take is one more that receivers fetch.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import suppress

from headwater.closing import Closing
from headwater.ingest.address import parse_host_port
from headwater.ingest.feed.multicast import sending_socket
from headwater.ingest.feed.wire import HEARTBEAT, POINTER, FeedDatagram, encode, packed, topic_mark
from headwater.ingest.retry import retry_while_away
from headwater.ingest.status import IngestCounts
from headwater.log import Log, Position, Start
from headwater.values import jsonl

HEARTBEAT_SECONDS = 0.5
POLL_SECONDS = 0.02


class FeedSender(Closing):
    """Sends a topic to a group of receivers.

    - ``log``: the open log.
    - ``topic``: its name.
    - ``to``: ``"239.0.0.1:5000"``, a group or one receiver.
    - ``start="latest"``: from where on.
    - ``interface=None``: the address of the network interface that it goes out by.
    """

    def __init__(
        self, log: Log, topic: str, to: str, *, start: Start = "latest", interface: str | None = None
    ):
        self._log, self._topic = log, log.topic(topic)
        self._offsets = dict(log.resolve(topic, start).offsets)
        self._mark = topic_mark(self._topic.id)
        self._socket = sending_socket(parse_host_port(to), interface)
        self._beaten = 0.0
        self.counts = IngestCounts()

    def run(self, stop: threading.Event) -> None:
        """Send what is appended until ``stop`` is set."""
        while not stop.is_set():
            if not retry_while_away(self.send_new, stop):
                stop.wait(POLL_SECONDS)
            if time.monotonic() - self._beaten >= HEARTBEAT_SECONDS:
                self.beat()
        self.beat()

    def send_new(self) -> bool:
        """Send what was appended since; tell whether there was anything."""
        end = self._log.resolve(self._topic.name, "latest")
        new = [number for number, offset in end.offsets.items() if offset > self._offsets.get(number, 0)]
        for partition in new:
            for datagram in self._datagrams(partition, end):
                self._send(datagram)
            self._offsets[partition] = end.offsets[partition]
        return bool(new)

    def beat(self) -> None:
        """Say how far each partition goes, so that the loss of the last datagram is noticed too."""
        for partition, offset in self._offsets.items():
            self._send(FeedDatagram(HEARTBEAT, partition, offset, offset))
        self._beaten = time.monotonic()

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def _datagrams(self, partition: int, end: Position) -> Iterator[FeedDatagram]:
        topic, first = self._log.topic(self._topic.name), self._offsets.get(partition, 0)
        if topic.compacted:  # deletions and gaps are the log's to tell
            yield FeedDatagram(POINTER, partition, first, end.offsets[partition])
            return
        start = Position(topic.name, {partition: first}, self._topic.id)
        for batch in self._log.read(topic.name, partition, start, end, meta=True):
            rows = batch.select(topic.schema.names)
            yield from packed(partition, batch.column("_offset").to_pylist(), jsonl.encode(rows, topic))
            self.counts.add(rows=len(batch))

    def _send(self, datagram: FeedDatagram) -> None:
        with suppress(OSError):  # nobody listens, or there is no room: receivers fetch it
            self._socket.send(encode(datagram, self._mark))
            self.counts.add(datagrams=1)
