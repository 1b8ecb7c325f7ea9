"""What a request asks of a view: rows of a range in an order, a page of them, or one row by its key.

Invariant: what cannot be read as asked is refused, and never passed over.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote_to_bytes

from starlette.requests import Request

from headwater.api import view_keys
from headwater.api.views import TIMEOUT
from headwater.errors import UsageError
from headwater.log import Position
from headwater.serve.views import cursor
from headwater.values.keyed import KeyedSchema
from headwater.views import ViewQuery

LIMIT, MOST = 1_000, 10_000
"""How many rows a page has, and how many it may be asked to have."""


@dataclass(frozen=True)
class PageRequest:
    """The parameters of a request for rows, as text."""

    prefix: tuple[str, ...]
    start: str | None
    end: str | None
    order: str | None
    descending: bool
    limit: int
    cursor: str | None

    def query(self, keyed: KeyedSchema) -> ViewQuery:
        """Return what it asks of a view with such columns; one row more than the page has."""
        leading = view_keys.prefix(self.prefix, keyed)
        first, last = (view_keys.bound(text, keyed, len(leading)) for text in (self.start, self.end))
        bare = ViewQuery(leading, first, last, self.order, self.descending)
        bare.check(keyed)
        after = None if self.cursor is None else cursor.values_of(self.cursor, bare, keyed)
        query = ViewQuery(leading, first, last, self.order, self.descending, self.limit + 1, after)
        query.check(keyed)
        return query


def page(request: Request) -> PageRequest:
    """Read the parameters of a request for rows."""
    given = request.query_params
    return PageRequest(
        tuple(given.getlist("prefix")),
        given.get("start"),
        given.get("end"),
        given.get("order"),
        _flag(given.get("desc", "false")),
        _limit(given.get("limit", str(LIMIT))),
        given.get("cursor"),
    )


def keys(request: Request) -> list[str]:
    """Return the values of ``?key=``, one for each column of the key; none if there is none."""
    return request.query_params.getlist("key")


def path_key(raw_path: bytes) -> list[str]:
    """Return the values of a key in a path: one segment for each column, in which %2F is a slash."""
    segments = raw_path.split(b"/")[4:]  # behind /v1/views/NAME/
    try:
        return [unquote_to_bytes(segment).decode() for segment in segments]
    except UnicodeDecodeError:
        raise UsageError("a key in a path is UTF-8, percent-encoded") from None


def awaited(request: Request) -> tuple[Position | None, float]:
    """Return the position that a view has to include, and for how long to wait for that."""
    after, seconds = request.query_params.get("after"), request.query_params.get("timeout", str(TIMEOUT))
    try:
        timeout = float(seconds)
    except ValueError:
        timeout = -1.0
    if not 0 <= timeout <= TIMEOUT:
        raise UsageError(f"timeout is a number of seconds up to {TIMEOUT:g}, not {seconds!r:.60}")
    return None if after is None else Position.parse(after), timeout


def _limit(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and 1 <= int(text[:9]) <= MOST and len(text) <= 9):
        raise UsageError(f"limit is a number of rows from 1 to {MOST:,}, not {text!r:.60}")
    return int(text)


def _flag(text: str) -> bool:
    if text not in ("true", "false"):
        raise UsageError(f"desc is true or false, not {text!r:.60}")
    return text == "true"


def key_of(texts: Sequence[str], keyed: KeyedSchema) -> tuple[Any, ...]:
    """Return the values of a whole key."""
    return view_keys.key(texts, keyed)
