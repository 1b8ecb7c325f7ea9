"""The application: all routes below ``/v1``, and the dashboard at ``/``.

Invariant: each route is called through ``Access``, with the scope that it declares; none can be added
that is not.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.websockets import WebSocket

from headwater.serve import health, operations
from headwater.serve.browser import files as browser
from headwater.serve.dashboard.page import PAGE
from headwater.serve.http.answer import json_response
from headwater.serve.http.openapi import PREFIX, describe
from headwater.serve.http.problem import DEFECT, HttpProblem, exception_response, problem_response
from headwater.serve.http.route import ApiRoute, ApiSocket, subject_of
from headwater.serve.http.served import Served
from headwater.serve.push import routes as push
from headwater.serve.push.live_push import LivePush
from headwater.serve.security import permissions, ticket_route
from headwater.serve.security.access import Access
from headwater.serve.security.middleware import SecurityMiddleware
from headwater.serve.security.router import Router
from headwater.serve.settings import state_home
from headwater.serve.topics import sending
from headwater.serve.topics.event_sender import EventSender
from headwater.serve.views import reading

ROUTES: tuple[ApiRoute, ...] = (
    *health.ROUTES,
    *ticket_route.ROUTES,
    *permissions.ROUTES,
    *sending.ROUTES,
    *operations.ROUTES,
    *push.ROUTES,
    *reading.ROUTES,  # last: the key of a row may be any path below its view
)
"""All routes of the API: those of each room, one after the other."""
SOCKETS: tuple[ApiSocket, ...] = (*push.SOCKETS,)
PAGES: tuple[BaseRoute, ...] = (*browser.PAGES, *PAGE)
"""What is not of the API: the dashboard and its files."""


def create_app(served: Served, access: Access | None = None) -> Application:
    """Return the application that serves a log, its views and pipelines."""
    access = access or Access(None, loopback=True)
    description = describe(ROUTES, tokens=access.tokens is not None)

    async def openapi(_request: Request) -> Response:
        return json_response(description)

    routes: list[BaseRoute] = [Route(f"{PREFIX}/openapi.json", openapi)]
    routes += [WebSocketRoute(PREFIX + each.path, _guarded_socket(each, access)) for each in SOCKETS]
    app = Starlette(routes=[*routes, *PAGES], exception_handlers=_HANDLERS)
    app.router.redirect_slashes = False
    app.state.served, app.state.access, app.state.stopping = served, access, asyncio.Event()
    app.state.push = LivePush()
    home = served.settings.state or state_home(served.log.url)
    app.state.ingest = EventSender(served.log, home, served.settings.waiting_bytes)
    return Application(app, access)


class Application(SecurityMiddleware):
    """The application behind its gate."""

    def __init__(self, app: Starlette, access: Access):
        super().__init__(Router(ROUTES, access, app), access)
        self.state = app.state


def _guarded_socket(socket: ApiSocket, access: Access) -> Callable[[WebSocket], Awaitable[None]]:
    async def handle(websocket: WebSocket) -> None:
        try:
            access.check(websocket, socket.scope, subject_of(socket, websocket.path_params))
        except HttpProblem as problem:
            await websocket.close(1008, problem.message)
            return
        await socket.handler(websocket)

    return handle


async def _http_problem(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return exception_response(error)


async def _defect(_request: Request, _error: Exception) -> Response:
    return problem_response(DEFECT)


_HANDLERS: dict[Any, Any] = {HTTPException: _http_problem, Exception: _defect}
