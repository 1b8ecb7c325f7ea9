"""A route as it is declared: one place says what is called, who may call it, and how it is described.

Invariant: what the description says of a route is what the router has: both are made of this.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from starlette.requests import Request
from starlette.responses import Response
from starlette.websockets import WebSocket

Handler = Callable[[Request], Awaitable[Response]]
SocketHandler = Callable[[WebSocket], Awaitable[None]]
Method = Literal["GET", "POST", "DELETE"]
Scope = Literal["send", "read", "operate"]
"""What a token has to allow: to send to a topic, to read a view or topic, or to operate a pipeline."""


@dataclass(frozen=True)
class Parameter:
    """A parameter of a route, in its path, its query or its headers."""

    name: str
    about: str
    where: Literal["path", "query", "header"] = "query"
    schema: Mapping[str, Any] = field(default_factory=lambda: {"type": "string"})


@dataclass(frozen=True)
class ApiRoute:
    """A method of a path below ``/v1``, its handler, and its description."""

    method: Method
    path: str
    handler: Handler
    scope: Scope | None
    """None: anybody may, such as health."""
    summary: str
    parameters: tuple[Parameter, ...] = ()
    body: Mapping[str, Any] | None = None
    """The request body, as OpenAPI describes it."""
    responses: Mapping[str, Any] = field(default_factory=dict)
    """Responses by status, as OpenAPI describes them; problem documents are added to all."""
    subject: str | None = None
    """The path parameter that a token's scope can be limited to, such as ``topic``."""


@dataclass(frozen=True)
class ApiSocket:
    """A WebSocket of a path below ``/v1``; its handler is called when the token was found to allow it."""

    path: str
    handler: SocketHandler
    scope: Scope | None
    subject: str | None = None


def subject_of(route: ApiRoute | ApiSocket, parameters: Mapping[str, Any]) -> str | None:
    """Return the topic or view that a call is about, if its route has one."""
    return None if route.subject is None else str(parameters[route.subject])
