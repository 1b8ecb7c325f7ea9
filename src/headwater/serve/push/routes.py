"""The routes of live push: changes of views, records of topics; each as events, messages or pages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from anyio import to_thread
from starlette.datastructures import QueryParams
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response
from starlette.websockets import WebSocket

from headwater.errors import HeadwaterError, UsageError
from headwater.serve.http.answer import JSON
from headwater.serve.http.problem import problem_response
from headwater.serve.http.route import ApiRoute, ApiSocket, Parameter
from headwater.serve.http.served import served
from headwater.serve.push.connection import EventStream, serve_socket
from headwater.serve.push.feed import PushFeed
from headwater.serve.push.filters import FilterTexts
from headwater.serve.push.live_push import LivePush
from headwater.serve.push.records import DEFAULT_LIMIT, MOST, record_page
from headwater.serve.push.session import PushRequest
from headwater.serve.push.topic_feed import TopicFeed
from headwater.serve.push.view_feed import ViewFeed
from headwater.serve.views.view_lookup import store_of

EVENTS = "text/event-stream"
FindFeed = Callable[[HTTPConnection], PushFeed]
"""Returns what a request is about."""


async def view_changes(request: Request) -> Response:
    """Follow a view as Server-Sent Events."""
    return await _events(request, view_feed)


async def topic_records(request: Request) -> Response:
    """Follow a topic as Server-Sent Events, or return a page of its records."""
    if EVENTS in request.headers.get("accept", ""):
        return await _events(request, topic_feed)
    page = await to_thread.run_sync(lambda: _page(request))
    return Response(page, media_type=JSON)


async def view_socket(socket: WebSocket) -> None:
    """Follow a view as messages."""
    await _serve_socket(socket, view_feed)


async def topic_socket(socket: WebSocket) -> None:
    """Follow a topic as messages."""
    await _serve_socket(socket, topic_feed)


def live_push(connection: HTTPConnection) -> LivePush:
    """Return what the server of a request pushes with."""
    return connection.app.state.push  # type: ignore[no-any-return]


def view_feed(connection: HTTPConnection) -> PushFeed:
    """Return the view that a request names."""
    name, views = store_of(connection)
    return ViewFeed(views, name, f"view {id(views)}/{name}")


def topic_feed(connection: HTTPConnection) -> PushFeed:
    """Return the topic that a request names."""
    return TopicFeed(served(connection).log, connection.path_params["topic"])


async def _events(request: Request, feed: FindFeed) -> Response:
    asked = await _push_request(request, feed)
    if request.method == "HEAD":
        return Response(media_type=EVENTS)
    return EventStream(live_push(request), asked)


async def _serve_socket(socket: WebSocket, feed: FindFeed) -> None:
    try:
        request = await _push_request(socket, feed)
    except HeadwaterError as error:
        return await socket.send_denial_response(problem_response(error))
    await socket.accept()
    return await serve_socket(socket, live_push(socket), request)


async def _push_request(connection: HTTPConnection, feed: FindFeed) -> PushRequest:
    return await to_thread.run_sync(lambda: _read_request(connection, feed(connection)))


def _read_request(connection: HTTPConnection, feed: PushFeed) -> PushRequest:
    query = connection.query_params
    since = connection.headers.get("last-event-id") or query.get("since") or query.get("from")
    if since is not None:
        feed.check(since)
    return PushRequest(feed, feed.filter(_filter_texts(query)), since, _flag(query, "snapshot"))


def _filter_texts(query: QueryParams) -> FilterTexts:
    partition = _number(query, "partition") if "partition" in query else None
    return FilterTexts(query.getlist("key"), query.getlist("where"), partition)


def _page(request: Request) -> bytes:
    query, name = request.query_params, request.path_params["topic"]
    log = served(request).log
    filter = TopicFeed(log, name).filter(_filter_texts(query))
    limit = _number(query, "limit") if "limit" in query else DEFAULT_LIMIT
    if not 0 < limit <= MOST:
        raise UsageError(f"limit is a number of records from 1 to {MOST:,}, not {limit}")
    start = query.get("from") or query.get("since") or "earliest"
    return record_page(log, name, start, filter, limit).to_json()


def _number(query: QueryParams, name: str) -> int:
    text = query[name]
    if not (text.isascii() and text.isdecimal() and len(text) < 19):
        raise UsageError(f'{name} is a number, not "{text:.40}"')
    return int(text)


def _flag(query: QueryParams, name: str) -> bool:
    text = query.get(name, "false")
    if text not in ("true", "false"):
        raise UsageError(f'{name} is true or false, not "{text:.40}"')
    return text == "true"


def _many(name: str, about: str) -> Parameter:
    return Parameter(name, about, schema={"type": "array", "items": {"type": "string"}})


_EVENT_STREAM: dict[str, Any] = {
    "schema": {
        "type": "object",
        "description": "one event of the stream: its id, its kind, and its data, which is JSON",
        "properties": {"id": {"type": "string"}, "event": {"type": "string"}, "data": {"type": "string"}},
    }
}
_SINCE = (
    Parameter("since", "the id of the last event that was had, or earliest, or latest (the default)"),
    Parameter("Last-Event-ID", "the same, as browsers send it when they reconnect", "header"),
)
_KEY = _many("key", "values of the leading columns of the key, one after the other")
_WHERE = _many("where", "a column and the value it must have, as city:Oslo; several must all hold")

ROUTES = (
    ApiRoute(
        "GET",
        "/views/{view}/changes",
        view_changes,
        "read",
        "follow the changes of a view, as Server-Sent Events or over a WebSocket",
        parameters=(
            Parameter("view", "its name", "path"),
            *_SINCE,
            Parameter(
                "snapshot",
                "true begins with the rows as they are",
                schema={"type": "boolean", "default": False},
            ),
            _KEY,
            _WHERE,
        ),
        responses={"200": {"description": "events", "content": {EVENTS: _EVENT_STREAM}}},
        subject="view",
    ),
    ApiRoute(
        "GET",
        "/topics/{topic}/records",
        topic_records,
        "read",
        "a page of the records of a topic; as text/event-stream, or over a WebSocket, those that arrive",
        parameters=(
            Parameter("topic", "its name", "path"),
            Parameter("from", "earliest, latest, an offset, a time of receipt, or the next of a page before"),
            Parameter("partition", "only this one", schema={"type": "integer", "minimum": 0}),
            Parameter("limit", "at most so many", schema={"type": "integer", "minimum": 1, "maximum": MOST}),
            *_SINCE,
            _KEY,
            _WHERE,
        ),
        responses={
            "200": {
                "description": "records",
                "content": {
                    JSON: {
                        "schema": {
                            "type": "object",
                            "required": ["records", "next"],
                            "properties": {
                                "records": {"type": "array", "items": {"type": "object"}},
                                "next": {"type": ["string", "null"]},
                            },
                        }
                    },
                    EVENTS: _EVENT_STREAM,
                },
            }
        },
        subject="topic",
    ),
)
SOCKETS = (
    ApiSocket("/views/{view}/changes", view_socket, "read", subject="view"),
    ApiSocket("/topics/{topic}/records", topic_socket, "read", subject="topic"),
)
