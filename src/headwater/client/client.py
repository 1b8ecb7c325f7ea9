"""The client of blocking programs.

Invariant: an event is sent once, however often the connection breaks: each ``send`` has a key by which the
server knows a repetition.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import httpx2

from headwater.client import calls
from headwater.client.calls import SILENCE_SECONDS, FollowRequest, HttpCall, Row, RowRange, SentEvents
from headwater.client.errors_of_server import server_error
from headwater.client.live_events import (
    EventParser,
    LiveChange,
    LiveRecord,
    ServerEvent,
    change_of,
    record_of,
)
from headwater.client.retries import BACKOFF, given_up
from headwater.client.server_trust import refuse_untrusted, trusted
from headwater.closing import Closing

T = TypeVar("T")


class Client(Closing):
    """Sends events to a server, reads its views and follows them.

    Calls are tried again while the server cannot be reached or is too busy, for ``retry_timeout`` seconds;
    what is followed is followed for ever, through any number of connections. Values are those of JSON: times
    are ISO 8601, DECIMAL is text, BINARY is base64. ``ca_file`` has the certificates of those whose signature
    is believed at an ``https://`` URL; without it, those that this machine believes.

    >>> with Client("http://127.0.0.1:8765") as client:  # doctest: +SKIP
    ...     sent = client.send("orders", {"id": 1, "city": "Oslo"})
    ...     client.get("totals", "Oslo", after=sent)
    {'city': 'Oslo', 'n': 1}
    """

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        retry_timeout: float = 30.0,
        timeout: float = 60.0,
        ca_file: str | os.PathLike[str] | None = None,
    ):
        self._retry_timeout, verify = retry_timeout, trusted(url, ca_file)
        self._http = httpx2.Client(
            base_url=url, headers=calls.authorization(token), timeout=timeout, verify=verify
        )

    def send(
        self, topic: str, rows: Row | Sequence[Row], *, idempotency_key: str | None = None
    ) -> SentEvents:
        """Append an event, or several whole or not at all; return where they are.

        It is sent again when the connection breaks or the server is busy, and appended once all the same.
        Give your own ``idempotency_key`` to send the same again after your program was restarted.
        """
        response = self._call(calls.send(topic, rows, idempotency_key))
        return calls.sent(response.status_code, response.headers, response.content)

    def get(self, view: str, key: Any, *, after: SentEvents | str | None = None) -> dict[str, Any] | None:
        """Return the row of a key, or None; with ``after``, not before it includes what was sent."""
        response = self._call(calls.get(view, key, after))
        return calls.row(response.status_code, response.content)

    def scan(
        self, view: str, rows: RowRange | None = None, *, after: SentEvents | str | None = None
    ) -> Iterator[dict[str, Any]]:
        """Yield the rows of a view, page by page; a page is of one moment, the next one of a later one."""
        cursor, asked = None, rows or RowRange()
        while True:
            response = self._call(calls.scan(view, asked, cursor, after))
            page = calls.page(response.status_code, response.content)
            yield from page.rows
            if page.next is None:
                return
            cursor, after = page.next, None

    def follow(
        self,
        view: str,
        *,
        key: Any = None,
        where: Mapping[str, Any] | None = None,
        since: str | int | None = None,
        snapshot: bool = False,
    ) -> Iterator[LiveChange]:
        """Yield the changes of a view as they come, each once and in order, for ever.

        ``key`` has values of the leading columns of the key, ``where`` of any column. ``since`` is the
        ``id`` or the ``sequence`` of the last change that was had; without it, from now on. With
        ``snapshot`` the rows come first. ``OffsetLost`` if the changes after ``since`` are no longer kept.
        """
        request = FollowRequest(calls.follow_view(view), key, where or {}, since, snapshot)
        return self._follow(request, lambda event: change_of(event, snapshot))

    def records(
        self, topic: str, *, key: Any = None, since: str | None = None, where: Mapping[str, Any] | None = None
    ) -> Iterator[LiveRecord]:
        """Yield the records of a topic as they come, each partition's in its order, for ever.

        ``since`` is the ``id`` of the last one, ``"earliest"``, an offset or a time; without it, from now on.
        """
        return self._follow(FollowRequest(calls.follow_topic(topic), key, where or {}, since), record_of)

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def _call(self, call: HttpCall) -> httpx2.Response:
        waiting = BACKOFF.pauses(self._retry_timeout)
        while True:
            outcome = self._attempt(call)
            if isinstance(outcome, httpx2.Response) and not calls.passing(outcome.status_code):
                return outcome
            pause = next(waiting, None)
            if pause is None:
                return given_up(outcome)
            time.sleep(pause)

    def _attempt(self, call: HttpCall) -> httpx2.Response | httpx2.TransportError:
        try:
            return self._http.request(**call.arguments())
        except httpx2.TransportError as error:
            refuse_untrusted(error)
            return error

    def _follow(self, request: FollowRequest, typed: Callable[[ServerEvent], T | None]) -> Iterator[T]:
        last: str | None = None
        waiting = BACKOFF.pauses()
        while True:
            parser = EventParser(last)
            try:
                for event in self._events(request.call(last), parser):
                    waiting = BACKOFF.pauses()
                    value = typed(event)
                    if value is not None:
                        yield value
            except httpx2.TransportError as error:
                refuse_untrusted(error)
            last = parser.last
            time.sleep(next(waiting))

    def _events(self, call: HttpCall, parser: EventParser) -> Iterator[ServerEvent]:
        timeout = httpx2.Timeout(10.0, read=SILENCE_SECONDS)
        with self._http.stream(**call.arguments(), timeout=timeout) as response:
            if calls.passing(response.status_code):
                return
            if response.status_code != 200:
                raise server_error(response.status_code, response.read())
            for text in response.iter_text():
                yield from parser.feed(text)
