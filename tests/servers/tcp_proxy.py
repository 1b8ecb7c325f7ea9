"""A proxy between clients and a server on loopback that can be slow, silent, or cut every connection.

Invariant: a byte is passed on at most once and in order; a connection that is cut passes on nothing more.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress


class Proxy:
    """Passes bytes on from one port to another."""

    def __init__(self, listen: int, target: int):
        self.rate: float | None = None
        """Bytes a second that clients may send over all of their connections; None for any number."""
        self.delay = 0.0
        """Seconds by which what clients send is held back."""
        self.open = True
        """Whether it takes connections; one that it does not take is cut at once."""
        self.answers = True
        """Whether clients hear the server; where they do not, a connection is cut when it answers."""
        self.connections = 0
        self._target, self._sockets = target, set[socket.socket]()
        self._lock, self._free_at = threading.Lock(), 0.0
        self._server = socket.create_server(("127.0.0.1", listen))
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """Cut all connections that there are."""
        with self._lock:
            sockets, self._sockets = self._sockets, set()
        for each in sockets:
            _cut(each)

    def close(self) -> None:
        self.open = False
        _cut(self._server)  # to close it alone would not wake who waits for connections
        self.cut()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._server.accept()
                self.connections += 1
                with suppress(OSError):
                    self._join(client)

    def _join(self, client: socket.socket) -> None:
        if not self.open:
            client.close()
            return
        server = socket.create_connection(("127.0.0.1", self._target))
        with self._lock:
            self._sockets |= {client, server}
        for source, sink, slowed in ((client, server, True), (server, client, False)):
            threading.Thread(target=self._pass, args=(source, sink, slowed), daemon=True).start()

    def _pass(self, source: socket.socket, sink: socket.socket, slowed: bool) -> None:
        with suppress(OSError):
            while data := source.recv(16 << 10):
                if slowed:
                    self._hold(len(data))
                elif not self.answers:
                    break
                sink.sendall(data)
        with self._lock:
            self._sockets -= {source, sink}
        _cut(source)
        _cut(sink)

    def _hold(self, size: int) -> None:
        """Wait as long as so many bytes take."""
        with self._lock:
            now = time.monotonic()
            if self.rate is not None:
                self._free_at = max(self._free_at, now) + size / self.rate
            until = max(self._free_at if self.rate is not None else 0.0, now + self.delay)
        time.sleep(max(0.0, until - now))


def _cut(each: socket.socket) -> None:
    with suppress(OSError):
        each.shutdown(socket.SHUT_RDWR)
    each.close()


@contextmanager
def running_proxy(listen: int, target: int) -> Iterator[Proxy]:
    """Listen at a port and pass on to another one."""
    proxy = Proxy(listen, target)
    try:
        yield proxy
    finally:
        proxy.close()
