"""Lines by TCP, and by UDP where each datagram is one: one thread, as fast as the log takes them.

A slow log slows the reader, and so the senders, whose windows fill: no more than a piece of each connection
waits here. TCP tells a sender nothing of what became of its bytes, so what was received and not yet written
is lost by a kill. Invariant: a line that has arrived whole is written, or counted as what else became of it.
"""

from __future__ import annotations

import selectors
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass

from headwater.ingest.address import HostPort, IngestAddress, bound_host_port, tcp_socket, udp_socket
from headwater.ingest.datagrams import DatagramReader
from headwater.ingest.ingest import Ingest
from headwater.ingest.lines.framing import NewlineSplitter, Splitter
from headwater.ingest.lines.line_writer import LineDestination, LineWriter

PIECE = 1 << 18
"""Bytes that are read of a connection before the others have their turn."""
CONNECTIONS = 1000
"""Connections that are served at once; others wait to be accepted."""
POLL_SECONDS = 0.1


@dataclass(frozen=True)
class LineProtocol:
    """How lines come: by which scheme, how they are cut, and whether by UDP too."""

    scheme: str = "tcp"
    splitter: Callable[[], Splitter] = NewlineSplitter
    datagrams: bool = False


@dataclass
class _Connection:
    """A client, and what it has begun to send."""

    opened: socket.socket
    source: str
    splitter: Splitter


class SocketLines(Ingest):
    """Receives lines of many clients."""

    def __init__(self, to: LineDestination, endpoint: HostPort, protocol: LineProtocol | None = None):
        self._to, self._protocol = to, protocol or LineProtocol()
        self._udp: DatagramReader | None = None
        if self._protocol.datagrams:
            opened = udp_socket(endpoint)
            self._udp_socket, endpoint = opened, bound_host_port(opened)
            self._udp = DatagramReader(opened)
        try:
            self._listener = tcp_socket(endpoint)
        except BaseException:
            self._close_udp()
            raise
        address = IngestAddress(self._protocol.scheme, bound_host_port(self._listener))
        super().__init__(to.log, to.name, str(address))
        self._selector = selectors.DefaultSelector()
        self._clients: set[int] = set()

    def _run(self, stop: threading.Event) -> None:
        with LineWriter(self._to, self.counts, stop) as writer:
            self._selector.register(self._listener, selectors.EVENT_READ)
            if self._udp is not None:
                self._selector.register(self._udp_socket, selectors.EVENT_READ)
            while not stop.is_set():
                self._serve(writer, POLL_SECONDS)
                self.checkpoint()
            self._end(writer)

    def close(self) -> None:
        """Close all sockets and the topics."""
        for key in list(self._selector.get_map().values()):
            key.fileobj.close()  # type: ignore[union-attr]
        self._selector.close()
        self._listener.close()
        self._close_udp()
        super().close()

    def _serve(self, writer: LineWriter, seconds: float) -> bool:
        """Take a piece of all that has something; tell whether anything has."""
        ready = [key for key, _ in self._selector.select(seconds)]
        for key in ready:
            if key.fileobj is self._listener:
                self._accept()
            elif isinstance(key.data, _Connection):
                self._read(key.data, writer)
            else:
                self._receive(writer)
        return bool(ready)

    def _accept(self) -> None:
        try:
            opened, peer = self._listener.accept()
        except OSError:  # it is gone again
            return
        opened.setblocking(False)
        connection = _Connection(opened, str(HostPort(peer[0], peer[1])), self._protocol.splitter())
        self._selector.register(opened, selectors.EVENT_READ, connection)
        self._clients.add(opened.fileno())
        self.counts.add(connections=1)
        if len(self._clients) >= CONNECTIONS:
            self._selector.unregister(self._listener)

    def _read(self, connection: _Connection, writer: LineWriter) -> None:
        try:
            data = connection.opened.recv(PIECE)
        except BlockingIOError:
            return
        except OSError:  # broken off: what it had begun is no line
            self.counts.add(cut_off=bool(connection.splitter.held))
            self._forget(connection)
            return
        begun = connection.splitter.held
        lines = connection.splitter.feed(data) if data else connection.splitter.rest()
        if lines:
            writer.write(lines, connection.source)
        if not data:
            self.counts.add(cut_off=bool(begun and not lines))
            self._forget(connection)

    def _receive(self, writer: LineWriter) -> None:
        assert self._udp is not None
        datagrams = [
            bytes(each) for each in self._udp.receive()
        ]  # one copy each: the next call overwrites them
        if datagrams:
            self.counts.add(datagrams=len(datagrams))
            writer.write([each.removesuffix(b"\n") for each in datagrams], "UDP")

    def _forget(self, connection: _Connection) -> None:
        self._selector.unregister(connection.opened)
        self._clients.discard(connection.opened.fileno())
        connection.opened.close()
        if self._listener not in self._selector.get_map():
            self._selector.register(self._listener, selectors.EVENT_READ)

    def _end(self, writer: LineWriter) -> None:
        """Write what has arrived, and no more: clients that go on sending are cut off."""
        for key in list(self._selector.get_map().values()):
            if isinstance(key.data, _Connection):
                self._read(key.data, writer)
                if key.data.opened.fileno() >= 0:
                    self.counts.add(cut_off=bool(key.data.splitter.held))
            elif self._udp is not None and key.fileobj is self._udp_socket:
                self._receive(writer)
        writer.flush()

    def _measure(self) -> None:
        if self._udp is not None:
            self.counts.add(dropped_by_kernel=self._udp.new_drops())

    def _close_udp(self) -> None:
        if self._udp is not None:
            self._udp.close()
