"""Requests to an OpenSearch server, over one connection that is kept, and what its refusals mean.

Invariant: a status that the caller has not asked for is an error of ours; only what may pass by itself is
waited for; no message has a password, and none has a row.
"""

from __future__ import annotations

import base64
import http.client
import ssl
from dataclasses import dataclass
from typing import Any

import orjson

from headwater.errors import HeadwaterError, SinkRefused, SinkUnavailable
from headwater.sinks.search.opensearch.address import Address
from headwater.stores import disk

_SECONDS = 60.0
_STALE = (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError)


@dataclass(frozen=True)
class Answer:
    """What a server has answered."""

    status: int
    body: dict[str, Any]

    @property
    def reason(self) -> str:
        """The kind of error that it names."""
        error = self.body.get("error")
        return str(error.get("type", "")) if isinstance(error, dict) else str(error or "")


class Rest:
    """A connection to one server, made anew when it has broken."""

    def __init__(self, address: Address, what: str):
        self._address, self._what = address, what
        self._connection: http.client.HTTPConnection | None = None

    def request(
        self, method: str, path: str, body: bytes | None = None, allowed: tuple[int, ...] = ()
    ) -> Answer:
        """Send a request; ``allowed`` are statuses beside success that the caller knows what to do with."""
        answer = self._decoded(*self._sent(method, path, body))
        if answer.status < 300 or answer.status in allowed:
            return answer
        raise refusal(answer.status, answer.reason, self._what)

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _sent(self, method: str, path: str, body: bytes | None) -> tuple[int, bytes]:
        kept = self._connection is not None
        try:
            return self._exchange(method, path, body)
        except _STALE as error:  # a server closes what is idle; every request may be sent twice
            if not kept:
                raise self._away(error) from None
        except (OSError, http.client.HTTPException) as error:
            raise self._away(error) from None
        try:
            return self._exchange(method, path, body)
        except (OSError, http.client.HTTPException) as error:
            raise self._away(error) from None

    def _exchange(self, method: str, path: str, body: bytes | None) -> tuple[int, bytes]:
        if self._connection is None:
            self._connection = self._connect()
        try:
            kind = "application/x-ndjson" if path.partition("?")[0].endswith("/_bulk") else "application/json"
            headers = {**self._authorization(), "Content-Type": kind}
            self._connection.request(method, path, body, headers)
            response = self._connection.getresponse()
            return response.status, response.read()
        except BaseException:
            self.close()  # an answer may be on its way that belongs to no later request
            raise

    def _connect(self) -> http.client.HTTPConnection:
        place = (self._address.host, self._address.port)
        if self._address.tls:
            return http.client.HTTPSConnection(*place, timeout=_SECONDS)
        return http.client.HTTPConnection(*place, timeout=_SECONDS)

    def _authorization(self) -> dict[str, str]:
        if self._address.user is None:
            return {}
        pair = f"{self._address.user}:{self._address.password or ''}".encode()
        return {"Authorization": "Basic " + base64.b64encode(pair).decode()}

    def _decoded(self, status: int, body: bytes) -> Answer:
        try:
            decoded = orjson.loads(body) if body else {}
        except orjson.JSONDecodeError:
            decoded = None
        if isinstance(decoded, dict):
            return Answer(status, decoded)
        if status >= 300:  # a proxy that speaks for itself
            raise refusal(status, f"HTTP {status}", self._what)
        raise SinkRefused(
            f"the server of {self._what} is no OpenSearch", detail="its answer is no JSON object"
        )

    def _away(self, error: Exception) -> HeadwaterError:
        self.close()
        detail = str(error) or type(error).__name__
        if isinstance(error, ssl.SSLCertVerificationError):
            hint = "name the authority that signed it in SSL_CERT_FILE"
            return SinkRefused(f"the certificate of {self._what} is not trusted", detail=detail, hint=hint)
        hint = f"see whether it runs at {self._address.host}:{self._address.port}"
        return SinkUnavailable(f"the server of {self._what} cannot be reached", detail=detail, hint=hint)


def refusal(status: int, reason: str, what: str) -> HeadwaterError:
    """Return what a status means."""
    detail = f"status {status}: {reason}"
    if status in (401, 403) and reason != "cluster_block_exception":
        return SinkRefused(
            f"the server of {what} refuses us", detail=detail, hint="check the user and its rights"
        )
    if reason == "cluster_block_exception":  # what it does by itself when its disk is nearly full
        return disk.full(what, detail)
    if status == 429 or status >= 500:
        return SinkUnavailable(f"the server of {what} cannot be used", detail=detail, hint="see its own log")
    return SinkRefused(f"the server of {what} says no", detail=detail)
