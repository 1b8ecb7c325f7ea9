"""``POST /v1/tickets``: what a page shows where a browser lets it set no header."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from headwater.serve.http.answer import json_response
from headwater.serve.http.route import ApiRoute
from headwater.serve.security.access import Access
from headwater.serve.security.tickets import SECONDS


async def issue(request: Request) -> Response:
    """Return a ticket for the token of the request; an empty one where no token is needed."""
    access: Access = request.app.state.access
    if access.tokens is None:
        return json_response({"ticket": "", "seconds": SECONDS})
    token = access.required_bearer(request)  # by no ticket: one that can be renewed would never end
    return json_response({"ticket": access.tickets.issue(token.name), "seconds": SECONDS})


_TICKET = {
    "type": "object",
    "required": ["ticket", "seconds"],
    "properties": {"ticket": {"type": "string"}, "seconds": {"type": "integer"}},
}
ROUTES: tuple[ApiRoute, ...] = (
    ApiRoute(
        "POST",
        "/tickets",
        issue,
        None,
        "Get a ticket, to be shown as ?ticket= by EventSource and WebSocket, which set no headers",
        responses={
            "200": {
                "description": "a ticket for the token of the request, and how long it is good for",
                "content": {"application/json": {"schema": _TICKET}},
            }
        },
    ),
)
