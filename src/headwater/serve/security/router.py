"""Finds the route of a request and calls it by way of ``Access``: the one way to a handler of the API.

Starlette's own router tries one pattern after the other, behind two layers that catch exceptions; here the
paths that were asked for last are remembered. Invariant: no handler runs before ``Access`` has allowed it
with the scope that its route declares, and whatever it raises is answered as a problem document.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from re import Pattern
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import compile_path
from starlette.types import Receive, Scope, Send

from headwater.errors import HeadwaterError
from headwater.serve.http.openapi import PREFIX
from headwater.serve.http.problem import DEFECT, exception_response, problem_response
from headwater.serve.http.route import ApiRoute, subject_of
from headwater.serve.security.access import Access

REMEMBERED = 256
"""Paths; each is as long as a head may be, at most."""


@dataclass(frozen=True)
class _Match:
    """The routes of a path, by their method, with the parameters that the path gives them."""

    routes: Mapping[str, tuple[ApiRoute, dict[str, str]]]

    def route(self, method: str) -> tuple[ApiRoute, dict[str, str]]:
        """Return the route of a method; where there is none, say which methods there are."""
        if (found := self.routes.get("GET" if method == "HEAD" else method)) is None:
            allowed = [*self.routes, *(["HEAD"] if "GET" in self.routes else [])]
            raise HTTPException(405, headers={"Allow": ", ".join(allowed)})
        return found


class Router:
    """Answers what the API has a route for; all else goes on to another application."""

    def __init__(self, routes: Sequence[ApiRoute], access: Access, others: Starlette):
        self._patterns: list[tuple[Pattern[str], ApiRoute]] = [
            (compile_path(PREFIX + route.path)[0], route) for route in routes
        ]
        self._access, self._others = access, others
        self._found = lru_cache(REMEMBERED)(self._match)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        match = self._found(scope["path"]) if scope["type"] == "http" else None
        if match is None:
            await self._others(scope, receive, send)
            return
        try:
            response = await self._answer(match, Request(scope, receive, send))
        except Exception:
            await problem_response(DEFECT)(scope, receive, send)
            raise  # it is for the server's log
        await response(scope, receive, send)

    async def _answer(self, match: _Match, request: Request[Any]) -> Response:
        try:
            route, parameters = match.route(request.method)
            request.scope["app"], request.scope["path_params"] = self._others, dict(parameters)
            self._access.check(request, route.scope, subject_of(route, parameters))
            return await route.handler(request)
        except HeadwaterError as error:
            return problem_response(error)
        except HTTPException as error:
            return exception_response(error)

    def _match(self, path: str) -> _Match | None:
        """Return what is at a path: for each method the first route that fits."""
        routes: dict[str, tuple[ApiRoute, dict[str, str]]] = {}
        for route, parameters in self._matching(path):
            routes.setdefault(route.method, (route, parameters))
        return _Match(routes) if routes else None

    def _matching(self, path: str) -> Iterator[tuple[ApiRoute, dict[str, str]]]:
        for pattern, route in self._patterns:
            if (match := pattern.match(path)) is not None:
                yield route, match.groupdict()
