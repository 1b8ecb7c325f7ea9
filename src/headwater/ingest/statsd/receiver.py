"""StatsD's datagrams into a topic: one thread takes them from the kernel, another makes rows of them.

The thread that receives does nothing else, so that a write to the log or the end of an interval does not make
the kernel drop datagrams; what waits between the two is bounded. Invariant: a datagram is parsed, or counted
as dropped: by the kernel, which had no room, or here (``overrun``). A crash loses the interval that it
interrupts.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from datetime import timedelta
from functools import partial

from headwater import durations
from headwater.api.background import Background
from headwater.ingest.address import HostPort, IngestAddress, bound_host_port, udp_socket
from headwater.ingest.datagrams import DatagramReader
from headwater.ingest.ingest import Ingest
from headwater.ingest.sequenced_producer import SequencedProducer
from headwater.ingest.statsd import aggregation
from headwater.ingest.statsd.aggregation import Aggregation
from headwater.ingest.statsd.parsing import parse
from headwater.ingest.topic_declaration import declare_topic
from headwater.log import Log

WAITING_BYTES = 64 << 20
"""Bytes of datagrams that may wait to be parsed."""
BLOCK_BYTES = 1 << 20
"""Bytes that are parsed at once, if that many wait."""
FEW, GATHERING_SECONDS = 64, 0.01
"""With fewer datagrams than that in one go, others are waited for: a block costs much more than a
datagram."""
POLL_SECONDS = 0.1


class StatsdIngest(Ingest):
    """Receives StatsD's datagrams."""

    def __init__(self, log: Log, name: str, topic: str, endpoint: HostPort, flush: timedelta | None):
        """``flush`` is the interval over which samples are aggregated; None keeps each as it is."""
        opened = udp_socket(endpoint)
        super().__init__(log, name, str(IngestAddress("statsd", bound_host_port(opened))))
        self._reader = DatagramReader(opened)
        self._flush_seconds = None if flush is None else flush.total_seconds()
        declared = aggregation.RAW if flush is None else aggregation.AGGREGATES
        declare_topic(log, topic, declared, key="metric", event_time="at")
        self._topic = topic
        self._aggregation = Aggregation()
        self._blocks: deque[bytes] = deque()
        self._received_bytes = self._parsed_bytes = 0  # each is changed by one thread alone
        self._arrived = threading.Event()

    def _run(self, stop: threading.Event) -> None:
        with SequencedProducer(self.log, self._topic, self.name, stop) as producer:
            receiving = Background(partial(self._receive, stop))
            self._work(stop, producer, receiving)
            receiving.result()
            self._finish(producer)

    def _finish(self, producer: SequencedProducer) -> None:
        while self._blocks or self._aggregation.rows:
            self._parse_waiting(producer)
            self._flush(producer, self._interval_seconds())
        producer.flush()

    def close(self) -> None:
        """Close the socket and the topics."""
        self._reader.close()
        super().close()

    # The thread that receives

    def _receive(self, stop: threading.Event) -> None:
        while not stop.is_set():
            if not self._reader.wait(POLL_SECONDS):
                continue
            datagrams = self._reader.receive()
            if len(datagrams) < FEW:
                time.sleep(GATHERING_SECONDS)
            self._take(datagrams)
        while datagrams := self._reader.receive():  # what came before it was stopped
            self._take(datagrams)

    def _take(self, datagrams: list[memoryview]) -> None:
        if not datagrams:
            return
        if self._received_bytes - self._parsed_bytes > WAITING_BYTES:
            self.counts.add(datagrams=len(datagrams), overrun=len(datagrams))
            return
        block = b"\n".join(datagrams)
        self._received_bytes += len(block)
        self._blocks.append(block)
        self.counts.add(datagrams=len(datagrams))
        self._arrived.set()

    # The thread that parses and appends

    def _work(self, stop: threading.Event, producer: SequencedProducer, receiving: Background[None]) -> None:
        self._began = time.monotonic()
        while not (stop.is_set() or receiving.ended(0)):
            self._arrived.wait(POLL_SECONDS)
            self._arrived.clear()
            self._parse_waiting(producer)
            elapsed = self._interval_seconds()
            if elapsed >= (self._flush_seconds or elapsed) or self._aggregation.is_full:
                self._flush(producer, elapsed)
            self.checkpoint()

    def _interval_seconds(self) -> float:
        return time.monotonic() - self._began

    def _parse_waiting(self, producer: SequencedProducer) -> None:
        while self._blocks and not self._aggregation.is_full:
            size, parts = 0, list[bytes]()
            while self._blocks and size < BLOCK_BYTES:
                parts.append(self._blocks.popleft())
                size += len(parts[-1])
            self._parse(b"\n".join(parts), producer)
            self._parsed_bytes += size

    def _parse(self, block: bytes, producer: SequencedProducer) -> None:
        parsed = parse(block)
        self.counts.add(
            lines=parsed.lines,
            samples=len(parsed.samples),
            malformed=parsed.malformed,
            not_taken=parsed.not_taken,
        )
        if self._flush_seconds is not None:
            self._aggregation.add(parsed.samples)
        elif len(parsed.samples):
            producer.append(aggregation.raw_rows(parsed.samples, durations.now()))
            self.counts.add(rows=len(parsed.samples))

    def _flush(self, producer: SequencedProducer, seconds: float) -> None:
        self._began = time.monotonic()
        if self._aggregation.rows:
            before = self._aggregation.forgotten
            rows = self._aggregation.flush(durations.now(), seconds)
            producer.append(rows)
            self.counts.add(rows=len(rows), gauges_forgotten=self._aggregation.forgotten - before)

    def _measure(self) -> None:
        self.counts.add(dropped_by_kernel=self._reader.new_drops())
