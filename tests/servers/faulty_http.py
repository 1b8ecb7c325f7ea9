"""A proxy before an HTTP server that answers some requests wrongly: late, with an error, half, or not at all.

Invariant: a fault happens to one request, in the order in which they were asked for; all others pass.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SLOW_DOWN = b"<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"
FAILED = b"<Error><Code>InternalError</Code><Message>We encountered an internal error.</Message></Error>"
DENIED = b"<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"


@dataclass(frozen=True)
class Fault:
    """What becomes of a request."""

    kind: str
    """``500``, ``503``, ``403``; ``slow``; ``cut``: half of the body; ``lost``: done, and no answer."""
    method: str = ""
    """Of which requests the next one is meant; of any if it is empty."""


@dataclass
class Faults:
    """Those that are still to happen, and how many did."""

    waiting: list[Fault] = field(default_factory=list)
    happened: int = 0
    requests: list[str] = field(default_factory=list)
    always: Fault | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def next(self, method: str, path: str) -> Fault | None:
        with self._lock:
            self.requests.append(f"{method} {path}")
            found = next((each for each in self.waiting if each.method in ("", method)), None)
            if found is not None:
                self.waiting.remove(found)
            found = found or (self.always if self.always and self.always.method in ("", method) else None)
            self.happened += found is not None
            return found


class FaultyServer(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, target: int):
        super().__init__(("127.0.0.1", 0), FaultyHandler)
        self.target, self.faults = target, Faults()

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that has gone away is no matter."""


class FaultyHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: FaultyServer

    def _handle(self) -> None:
        body = self._body()
        fault = self.server.faults.next(self.command, self.path)
        kind = fault.kind if fault else ""
        if kind in ("500", "503", "403"):
            return self._answer(int(kind), {}, {"500": FAILED, "503": SLOW_DOWN, "403": DENIED}[kind])
        if kind == "slow":
            time.sleep(1.0)
        connection = HTTPConnection("127.0.0.1", self.server.target, timeout=30)
        headers = {name: value for name, value in self.headers.items() if name.lower() != "transfer-encoding"}
        connection.request(self.command, self.path, body, headers)
        answer = connection.getresponse()
        data = answer.read()
        connection.close()
        if kind == "lost":
            self.close_connection = True
            return self.connection.close()
        return self._answer(answer.status, dict(answer.getheaders()), data, cut=kind == "cut")

    def _body(self) -> bytes:
        if "chunked" not in self.headers.get("Transfer-Encoding", ""):
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        found = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            found += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return found

    def _answer(self, status: int, headers: dict[str, str], data: bytes, cut: bool = False) -> None:
        self.send_response(status)
        for name, value in headers.items():
            if name.lower() not in ("content-length", "transfer-encoding", "connection", "date", "server"):
                self.send_header(name, value)
        length = headers.get("Content-Length") if self.command == "HEAD" else None
        self.send_header("Content-Length", length or str(len(data)))
        self.end_headers()
        self.wfile.write(data[: len(data) // 2] if cut else data)
        if cut:
            self.close_connection = True
            self.wfile.flush()
            self.connection.close()

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = _handle

    def log_message(self, format: str, *arguments: object) -> None:
        """Say nothing."""


@contextmanager
def faulty_http(target: int) -> Iterator[FaultyServer]:
    """Stand before the server at a port."""
    server = FaultyServer(target)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        with suppress(OSError):
            server.shutdown()
        server.server_close()
        thread.join(10)
