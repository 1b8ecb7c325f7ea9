"""``GET /v1/permissions``: what the token of a request allows, so that a page offers nothing that is refused.

Invariant: it tells nothing of other tokens, and decides nothing: each route asks for its scope by itself.
"""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from headwater.serve.http.answer import json_response
from headwater.serve.http.route import ApiRoute
from headwater.serve.security.access import Access
from headwater.serve.security.scopes import EVERYTHING


async def show_permissions(request: Request) -> Response:
    """Answer with the name and the scopes of the token; where none is needed, everything is allowed."""
    access: Access = request.app.state.access
    if access.tokens is None:
        return json_response({"token": None, "scopes": list(EVERYTHING)})
    token = access.required_bearer(request)
    return json_response({"token": token.name, "scopes": list(token.scopes)})


_PERMISSIONS = {
    "type": "object",
    "required": ["token", "scopes"],
    "properties": {
        "token": {"type": ["string", "null"]},
        "scopes": {"type": "array", "items": {"type": "string"}},
    },
}
ROUTES: tuple[ApiRoute, ...] = (
    ApiRoute(
        "GET",
        "/permissions",
        show_permissions,
        None,
        "What the token of the request allows",
        responses={
            "200": {
                "description": "its name, null where no token is needed, and its scopes",
                "content": {"application/json": {"schema": _PERMISSIONS}},
            }
        },
    ),
)
