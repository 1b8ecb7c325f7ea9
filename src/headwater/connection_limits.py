"""What a connection may take: how large its headers are, how long a request may be on its way.

uvicorn bounds the number of connections, and closes idle ones; of a request that is not finished it waits
for the rest, however long that takes and however large it grows. Invariant: a request whose head is too
large, or that has not arrived within its time, is refused, and its connection closed.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEADER_BYTES = 32 << 10
REQUEST_SECONDS = 60.0
LINGER_SECONDS = 1.0
_PROBLEM = (
    "HTTP/1.1 {status} {title}\r\ncontent-type: application/problem+json\r\ncontent-length: {size}\r\n"
    "x-content-type-options: nosniff\r\nconnection: close\r\n\r\n{body}"
)


class LimitedConnection(HttpToolsProtocol):
    """A connection whose requests are bounded in size and time."""

    request_seconds = REQUEST_SECONDS

    def __init__(self, *args: Any, **settings: Any):
        super().__init__(*args, **settings)
        self._head, self._refused = 0, False
        self._in_head, self._in_body = True, False
        self._due: float | None = None
        """When the request that is on its way must have arrived."""
        self._timer: asyncio.TimerHandle | None = None
        """One for many requests: it looks when it ends whether another is due by then."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first request, and not for ever."""
        super().connection_made(transport)
        self._expect()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        self._expect_nothing()
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read on, unless the head of the request is too large."""
        if self._refused:
            return
        of_head = 0 if self._in_body else len(data)  # what ends a body may begin the next request
        super().data_received(data)
        self._head += of_head
        if self._in_head and self._head > HEADER_BYTES:
            self._refuse(431, "Request Header Fields Too Large")

    def on_message_begin(self) -> None:
        """Begin a request."""
        super().on_message_begin()
        self._in_head, self._head = True, 0
        self._expect()

    def on_headers_complete(self) -> None:
        """Look at the size of what may have come at once."""
        self._in_head, self._in_body = False, True
        size = len(self.url) + sum(len(name) + len(value) for name, value in self.headers)
        if size > HEADER_BYTES:
            self._refuse(431, "Request Header Fields Too Large")
        elif not self._refused:
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Take a part of the body."""
        if not self._refused:
            super().on_body(body)

    def on_message_complete(self) -> None:
        """End a request."""
        self._in_body = False
        self._expect_nothing()
        if not self._refused:
            super().on_message_complete()

    def handle_websocket_upgrade(self) -> None:
        """Go over to a WebSocket, which lives as long as it wants."""
        self._expect_nothing()
        super().handle_websocket_upgrade()

    def _expect(self) -> None:
        self._due = self.loop.time() + self.request_seconds
        if self._timer is None:
            self._timer = self.loop.call_at(self._due, self._look_at_time)

    def _expect_nothing(self) -> None:
        self._due = None

    def _look_at_time(self) -> None:
        self._timer = None
        if self._due is None:
            return
        if self._due <= self.loop.time():
            self._refuse(408, "Request Timeout")
        else:
            self._timer = self.loop.call_at(self._due, self._look_at_time)

    def _refuse(self, status: int, title: str) -> None:
        self._refused = True
        self._expect_nothing()
        answered = self.cycle is not None and self.cycle.response_started and not self.cycle.response_complete
        if not self.transport.is_closing():
            if not answered:
                body = f'{{"type":"about:blank","title":"{title.lower()}","status":{status}}}'
                text = _PROBLEM.format(status=status, title=title, size=len(body), body=body)
                self.transport.write(text.encode())
            self._close_later()

    def _close_later(self) -> None:
        """End the answer, and close when the client has had time to read it; what it sends is dropped."""
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self.loop.call_later(LINGER_SECONDS, self.transport.close)
