"""The connections over which sessions write: an HTTP response of events, and a WebSocket.

Invariant: a client that takes nothing for long is let go, with the task and the memory that it holds; it
comes back with its last id.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from typing import Any

from starlette.responses import Response
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect

from headwater.serve.push.live_push import LivePush
from headwater.serve.push.session import PushRequest, PushSession
from headwater.serve.push.wire import SSE, WEBSOCKET

WRITE_SECONDS = 30.0
"""How long a client may take nothing."""
_HEADERS = {
    "Cache-Control": "no-store",
    "X-Accel-Buffering": "no",  # a proxy that collects a response before it passes it on would never do so
}
_OPENING = b": headwater\nretry: 1000\n\n"
_LAST_SECONDS = 1.0
_AGAIN = 1013
"""The code with which a WebSocket is closed: come back later."""


class EventStream(Response):
    """An HTTP response of Server-Sent Events that ends with its session."""

    media_type = "text/event-stream"

    def __init__(self, push: LivePush, request: PushRequest, write_seconds: float = WRITE_SECONDS):
        super().__init__(headers=_HEADERS)
        del self.headers["content-length"]
        self._push, self._request, self._write_seconds = push, request, write_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Write events until the session ends or the client is gone."""
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        watch = _StalledWrite(self._write_seconds)

        async def write(frames: Sequence[bytes]) -> None:
            for frame in frames:
                watch.writing = True
                await send({"type": "http.response.body", "body": frame, "more_body": True})
                watch.writing = False

        finished = False
        try:
            await write([_OPENING])
            session = PushSession(self._push, self._request, SSE, write)
            if await _run(session, _disconnected(receive), watch.expired()):
                async with asyncio.timeout(_LAST_SECONDS):
                    await send({"type": "http.response.body", "body": b"", "more_body": False})
            finished = not watch.writing
        except TimeoutError:
            return
        finally:
            if not finished:
                _abort(receive)


class _StalledWrite:
    """Notices a write that does not end, by a look now and then: a timer for each costs more than a write."""

    def __init__(self, seconds: float):
        self._seconds = seconds
        self._writing = False
        self._writes = 0

    @property
    def writing(self) -> bool:
        """Whether a write has begun and not ended."""
        return self._writing

    @writing.setter
    def writing(self, now: bool) -> None:
        self._writing = now
        self._writes += now

    async def expired(self) -> None:
        """Return when one write has been under way at two looks, that far apart."""
        seen = -1
        while not (self._writing and self._writes == seen):
            seen = self._writes if self._writing else -1
            await asyncio.sleep(self._seconds)


async def serve_socket(socket: WebSocket, push: LivePush, request: PushRequest) -> None:
    """Write events to an accepted WebSocket until the session ends or the client is gone."""

    async def write(frames: Sequence[bytes]) -> None:
        for frame in frames:
            async with asyncio.timeout(WRITE_SECONDS):
                await socket.send_text(frame.decode())

    if await _run(PushSession(push, request, WEBSOCKET, write), _closed(socket)):
        with suppress(RuntimeError, WebSocketDisconnect):
            await socket.close(_AGAIN)


async def _run(session: PushSession, *ends: Coroutine[Any, Any, None]) -> bool:
    """Run a session beside what tells that the client is gone; tell whether the session ended by itself."""
    following, *_ = tasks = [asyncio.ensure_future(each) for each in (session.run(), *ends)]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        return following.done() and not following.cancelled() and following.exception() is None
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _abort(receive: Receive) -> None:
    """Drop a connection whose client takes nothing: closed in order, it would wait for that client for ever.

    ASGI has no word for it, so uvicorn's own is used where it is uvicorn that serves.
    """
    transport = getattr(getattr(receive, "__self__", None), "transport", None)
    if transport is not None:
        transport.abort()


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _closed(socket: WebSocket) -> None:
    """Return when the client has closed; what it says meanwhile means nothing here."""
    with suppress(WebSocketDisconnect, RuntimeError):
        while (await socket.receive())["type"] != "websocket.disconnect":
            pass
