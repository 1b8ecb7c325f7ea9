"""What clients ask and what they make of the answers, without a connection: the same for both clients.

Invariant: a call that may be repeated says so; a ``send`` carries a key by which its repetition is known.
"""

from __future__ import annotations

import base64
import math
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import Any
from urllib.parse import quote

import orjson

from headwater.client.errors_of_server import is_no_row, server_error
from headwater.errors import RowError

Row = Mapping[str, Any]
_EVENTS = "text/event-stream"
_AGAIN = (409, 429, 502, 503)
"""Answers that may pass by themselves; 409 is of a send that another server has under way."""
SILENCE_SECONDS = 45.0
"""After so long without a sign of life a connection is taken for dead; a server gives one every 15."""


@dataclass(frozen=True)
class HttpCall:
    """A request as it goes over the wire."""

    method: str
    path: str
    params: tuple[tuple[str, str], ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None

    def arguments(self) -> dict[str, Any]:
        """Return it as httpx2 takes it."""
        return {
            "method": self.method, "url": self.path, "params": list(self.params), "headers": self.headers,
            "content": self.body,
        }  # fmt: skip


@dataclass(frozen=True)
class SentEvents:
    """What a ``send`` has done: where it has got to, to be handed to reads as ``after``."""

    position: str
    rows: int
    repeated: bool
    """Whether the server had them already, from an attempt whose answer was lost."""


@dataclass(frozen=True)
class RowPage:
    """Some rows, and how to ask for the next ones; None at the end."""

    rows: Sequence[dict[str, Any]]
    next: str | None


def send(topic: str, rows: Row | Sequence[Row], key: str | None) -> HttpCall:
    """Return the call that sends events, all or none."""
    listed = [rows] if isinstance(rows, Mapping) else list(rows)
    headers = {"Content-Type": "application/json", "Idempotency-Key": key or str(uuid.uuid4())}
    body = orjson.dumps(listed, default=_json, option=orjson.OPT_UTC_Z)
    if b"null" in body:  # as orjson writes what JSON has no number for
        _check_numbers(listed)
    return HttpCall("POST", f"/v1/topics/{quote(topic, safe='')}", headers=headers, body=body)


def get(view: str, key: Any, after: SentEvents | str | None) -> HttpCall:
    """Return the call that reads one row."""
    values = key if isinstance(key, tuple | list) else (key,)
    return HttpCall("GET", _view(view), (*(("key", text(each)) for each in values), *_after(after)))


@dataclass(frozen=True)
class RowRange:
    """Which rows of a view, in which order."""

    prefix: Any = None
    start: Any = None
    end: Any = None
    order: str | None = None
    descending: bool = False
    page: int = 1_000
    """How many rows are fetched at once."""

    def params(self) -> list[tuple[str, str]]:
        """Return it as the parameters of a call."""
        leading = self.prefix if isinstance(self.prefix, tuple | list) else (self.prefix,)
        params = [("prefix", text(each)) for each in leading if each is not None]
        bounds = (("start", self.start), ("end", self.end), ("order", self.order), ("limit", self.page))
        params += [(name, text(value)) for name, value in bounds if value is not None]
        return [*params, ("desc", "true")] if self.descending else params


def scan(view: str, rows: RowRange, cursor: str | None, after: SentEvents | str | None) -> HttpCall:
    """Return the call that reads a page of rows."""
    following = [] if cursor is None else [("cursor", cursor)]
    return HttpCall("GET", _view(view), (*rows.params(), *following, *_after(after)))


@dataclass(frozen=True)
class FollowRequest:
    """What is followed, and which part of it."""

    path: str
    key: Any = None
    where: Mapping[str, Any] = field(default_factory=dict)
    since: str | int | None = None
    snapshot: bool = False

    def call(self, last: str | None) -> HttpCall:
        """Return the call that goes on after the last id."""
        values = self.key if isinstance(self.key, tuple | list) else (self.key,)
        params = [("key", text(each)) for each in values if each is not None]
        params += [("where", f"{name}:{text(value)}") for name, value in self.where.items()]
        params += [("snapshot", "true")] if self.snapshot else []
        since = last or (None if self.since is None else str(self.since))
        headers = {"Accept": _EVENTS, "Cache-Control": "no-store"}
        return HttpCall(
            "GET", self.path, tuple(params), headers | ({"Last-Event-ID": since} if since else {})
        )


def follow_view(view: str) -> str:
    """Return the path of a view's changes."""
    return f"{_view(view)}/changes"


def follow_topic(topic: str) -> str:
    """Return the path of a topic's records."""
    return f"/v1/topics/{quote(topic, safe='')}/records"


def authorization(token: str | None) -> dict[str, str]:
    """Return the headers by which a server knows who calls."""
    return {} if token is None else {"Authorization": f"Bearer {token}"}


def passing(status: int) -> bool:
    """Tell whether a refusal may pass by itself."""
    return status in _AGAIN


def sent(status: int, headers: Mapping[str, str], body: bytes) -> SentEvents:
    """Return what a ``send`` was answered."""
    answer = checked(status, body)
    return SentEvents(answer["position"], answer["rows"], headers.get("idempotency-replayed") == "true")


def row(status: int, body: bytes) -> dict[str, Any] | None:
    """Return the row that a ``get`` was answered; None where there is none."""
    if is_no_row(status, body):
        return None
    answer: dict[str, Any] = checked(status, body)
    return answer


def page(status: int, body: bytes) -> RowPage:
    """Return the rows that a ``scan`` was answered."""
    answer = checked(status, body)
    return RowPage(answer["rows"], answer["next"])


def checked(status: int, body: bytes) -> Any:
    """Return an answer, or raise what it refuses."""
    if status >= 300:
        raise server_error(status, body)
    return orjson.loads(body)


def text(value: Any) -> str:
    """Return a value as it stands in a URL."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return _base64(value)
    return value.isoformat() if isinstance(value, datetime | date) else str(value)


def _view(view: str) -> str:
    return f"/v1/views/{quote(view, safe='')}"


def _after(after: SentEvents | str | None) -> tuple[tuple[str, str], ...]:
    if after is None:
        return ()
    return (("after", after if isinstance(after, str) else after.position),)


def _json(value: Any) -> Any:
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, bytes):
        return _base64(value)
    raise TypeError(type(value).__name__)


def _check_numbers(rows: Sequence[Row]) -> None:
    for number, row in enumerate(rows):
        if not _is_finite(row):
            raise RowError(
                "a number is NaN or infinite, which JSON cannot tell from null",
                hint='send the text "NaN", "Infinity" or "-Infinity" to a DOUBLE, or None',
                row=number,
            )


def _is_finite(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, Mapping):
        return all(map(_is_finite, value.values()))
    return not isinstance(value, list | tuple) or all(map(_is_finite, value))


def _base64(value: bytes) -> str:
    return base64.b64encode(value).decode()
