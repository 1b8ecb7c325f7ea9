"""Requests over HTTP, for webhooks and push services: connections are kept and used again.

Python's own client is enough: it follows no redirect, which would take a signed body elsewhere, and needs
nothing to be installed. Invariant: what goes wrong on the way is an ``HttpFailure``, which names no secret.
"""

from __future__ import annotations

import http.client
import ssl
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache
from urllib.parse import SplitResult, urlsplit

from headwater.closing import Closing
from headwater.errors import UsageError

_READ = 4096
"""As much of an answer is read; a connection with more to come is not used again."""
_LONGEST_WAIT = 86_400.0


class HttpFailure(Exception):
    """A request that got no answer."""


@dataclass(frozen=True)
class HttpAnswer:
    """What a server says."""

    status: int
    text: str = ""
    retry_after: float | None = None
    """In how many seconds it wants to be asked again."""


def http_url(text: str, what: str) -> SplitResult:
    """Return the parts of a URL; refuse one that is none, or has a password in it.

    >>> http_url("https://shop.example/hook", "webhook").hostname
    'shop.example'
    """
    try:
        parts = urlsplit(text)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        valid = False
    if not valid or any(char <= " " or char > "~" for char in text):
        raise UsageError(f"a {what} needs the URL of an endpoint", hint='write "https://host/path"')
    if parts.username is not None:
        raise UsageError(f"the URL of a {what} has a user", hint="receivers know us by the signature")
    return parts


class HttpClient(Closing):
    """Posts to servers from any thread, and keeps connections for the next request."""

    def __init__(self, timeout: float = 20.0):
        self._timeout = timeout
        self._idle: dict[_HttpServer, list[http.client.HTTPConnection]] = {}
        self._lock = threading.Lock()

    def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> HttpAnswer:
        """Post a body; a connection that has gone stale meanwhile is made anew."""
        parts = urlsplit(url)
        server = _HttpServer(parts.scheme, parts.hostname or "", parts.port)
        request = _PostRequest(
            (parts.path or "/") + (f"?{parts.query}" if parts.query else ""), body, headers
        )
        kept = self._take(server)
        if kept is not None:
            with suppress(ConnectionError):  # it was closed while nobody used it
                return self._ask(kept, server, request)
        try:
            return self._ask(self._connect(server), server, request)
        except ConnectionError as error:
            raise HttpFailure(_reason(error)) from None

    def close(self) -> None:
        """Close the connections that nobody uses."""
        with self._lock:
            connections = [each for kept in self._idle.values() for each in kept]
            self._idle.clear()
        for connection in connections:
            connection.close()

    def _ask(
        self, connection: http.client.HTTPConnection, server: _HttpServer, request: _PostRequest
    ) -> HttpAnswer:
        try:
            connection.request("POST", request.path, request.body, dict(request.headers))
            answer = connection.getresponse()
            text = answer.read(_READ).decode(errors="replace")
        except ConnectionError:
            connection.close()
            raise
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise HttpFailure(_reason(error)) from None
        if answer.isclosed() and not answer.will_close:
            self._keep(server, connection)
        else:
            connection.close()
        return HttpAnswer(answer.status, text, _seconds(answer.getheader("Retry-After")))

    def _connect(self, server: _HttpServer) -> http.client.HTTPConnection:
        if server.scheme == "https":
            return http.client.HTTPSConnection(
                server.host, server.port, timeout=self._timeout, context=_tls()
            )
        return http.client.HTTPConnection(server.host, server.port, timeout=self._timeout)

    def _take(self, server: _HttpServer) -> http.client.HTTPConnection | None:
        with self._lock:
            kept = self._idle.get(server)
            return kept.pop() if kept else None

    def _keep(self, server: _HttpServer, connection: http.client.HTTPConnection) -> None:
        with self._lock:
            self._idle.setdefault(server, []).append(connection)


@dataclass(frozen=True)
class _HttpServer:
    scheme: str
    host: str
    port: int | None


@dataclass(frozen=True)
class _PostRequest:
    path: str
    body: bytes
    headers: Mapping[str, str]


@cache
def _tls() -> ssl.SSLContext:
    return ssl.create_default_context()


def _seconds(header: str | None) -> float | None:
    """Read ``Retry-After``: seconds, or a date."""
    if header is None:
        return None
    try:
        if header.strip().isdecimal():
            wait = float(header)
        else:
            wait = (parsedate_to_datetime(header) - datetime.now(UTC)).total_seconds()
    except (ValueError, TypeError, OverflowError):
        return None
    return min(max(0.0, wait), _LONGEST_WAIT)


def _reason(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return type(error).__name__
