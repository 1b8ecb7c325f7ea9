"""The two ways events travel: Server-Sent Events, and messages of a WebSocket.

Invariant: an event's id is what a client names to go on after it, and data is one line of JSON.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import orjson

_LINE_BREAKS = bytes.maketrans(b"\r\n", b"  ")


class Wire(ABC):
    """How events are written for one kind of connection."""

    @abstractmethod
    def event(self, name: str, data: bytes, id: str | None = None) -> bytes:
        """Return an event."""

    @abstractmethod
    def progress(self, id: str) -> bytes:
        """Return a sign of life that moves the id on, and is no event to a client's code."""

    @abstractmethod
    def frames(self, events: Sequence[bytes]) -> tuple[bytes, ...]:
        """Return what is handed over piece by piece."""


class ServerSentEvents(Wire):
    """Lines of text in an HTTP response (``text/event-stream``)."""

    def event(self, name: str, data: bytes, id: str | None = None) -> bytes:
        """Return an event; free JSON may have line breaks between its tokens, which would end a field."""
        line = data.translate(_LINE_BREAKS) if b"\n" in data or b"\r" in data else data
        head = f"event: {name}\n" if id is None else f"id: {id}\nevent: {name}\n"
        return b"%sdata: %s\n\n" % (head.encode(), line)

    def progress(self, id: str) -> bytes:
        """Return a comment and an id; without data a client dispatches nothing, and still keeps the id."""
        return f": heartbeat\nid: {id}\n\n".encode()

    def frames(self, events: Sequence[bytes]) -> tuple[bytes, ...]:
        """Return all as one piece: their borders are in the text."""
        return (b"".join(events),) if events else ()


class WebSocketMessages(Wire):
    """Text messages, each a JSON object with ``event``, ``id`` and ``data``."""

    def event(self, name: str, data: bytes, id: str | None = None) -> bytes:
        """Return an event."""
        return b'{"event":"%s","id":%s,"data":%s}' % (name.encode(), orjson.dumps(id), data)

    def progress(self, id: str) -> bytes:
        """Return a message without data."""
        return b'{"event":"heartbeat","id":%s}' % orjson.dumps(id)

    def frames(self, events: Sequence[bytes]) -> tuple[bytes, ...]:
        """Return one message for each."""
        return tuple(events)


SSE, WEBSOCKET = ServerSentEvents(), WebSocketMessages()
