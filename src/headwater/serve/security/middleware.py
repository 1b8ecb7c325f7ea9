"""What every answer carries, and what every request passes before its route: one wrapper of the whole server.

Invariant: no answer leaves without the headers that keep browsers from guessing its type, framing it or
telling its address; a page of another origin is told nothing unless its origin was named.
"""

from __future__ import annotations

from collections.abc import Iterable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headwater.serve.http.header_fields import header_fields
from headwater.serve.http.problem import HttpProblem, problem_response
from headwater.serve.security.access import Access

Headers = list[tuple[bytes, bytes]]

_ALWAYS: Headers = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-opener-policy", b"same-origin"),
]
_DATA: Headers = [
    *_ALWAYS,
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"cache-control", b"no-store"),
]
_PAGE: Headers = [
    *_ALWAYS,
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
        b"connect-src 'self'; manifest-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'self'; "
        b"frame-ancestors 'none'",
    ),
]
_ALLOWED = (
    b"authorization, content-type, idempotency-key, if-none-match, last-event-id, headwater-sent, "
    b"headwater-occurred"
)
_EXPOSED = b"etag, retry-after, idempotency-replayed"


class SecurityMiddleware:
    """Wraps the application."""

    def __init__(self, app: ASGIApp, access: Access):
        self._app, self._access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request pass, or answer why not."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        fields = header_fields(scope)
        added = _DATA if scope["path"].startswith("/v1") else _PAGE
        origin = fields.get("origin")
        if origin is not None and origin in self._access.origins:
            added = [*added, *_shared(origin)]

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = _with(message.get("headers", ()), added)
            await send(message)

        try:
            self._access.check_origin(scope, fields)
        except HttpProblem as problem:
            await _refuse(problem, scope, receive, answer)
            return
        if scope["type"] == "http" and scope["method"] == "OPTIONS" and origin in self._access.origins:
            await _preflight(answer)
            return
        await self._app(scope, receive, answer)


async def _refuse(problem: HttpProblem, scope: Scope, receive: Receive, answer: Send) -> None:
    if scope["type"] == "websocket":
        await receive()
        await answer({"type": "websocket.close", "code": 1008, "reason": problem.message})
    else:
        await problem_response(problem)(scope, receive, answer)


async def _preflight(answer: Send) -> None:
    headers = [
        (b"access-control-allow-methods", b"GET, POST, DELETE"),
        (b"access-control-allow-headers", _ALLOWED),
        (b"access-control-max-age", b"600"),
    ]
    await answer({"type": "http.response.start", "status": 204, "headers": headers})
    await answer({"type": "http.response.body", "body": b""})


def _shared(origin: str) -> Headers:
    return [
        (b"access-control-allow-origin", origin.encode("latin-1")),
        (b"access-control-expose-headers", _EXPOSED),
        (b"vary", b"origin"),
    ]


def _with(headers: Iterable[tuple[bytes, bytes]], added: Headers) -> Headers:
    """Return headers with others, where they are not there yet."""
    own = list(headers)
    names = {name for name, _ in own}
    return own + [each for each in added if each[0] not in names]
