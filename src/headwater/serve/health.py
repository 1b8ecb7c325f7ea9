"""Whether a server lives, and whether it can do its work: for those who start it, and balance load.

Invariant: to answer costs nothing that grows, and tells nothing of what is served.
"""

from __future__ import annotations

from anyio.to_thread import run_sync
from starlette.requests import Request
from starlette.responses import Response

from headwater.serve.http.answer import json_response
from headwater.serve.http.route import ApiRoute
from headwater.serve.http.served import served

_STATUS = {
    "type": "object",
    "required": ["status"],
    "properties": {"status": {"type": "string"}},
}


def _told(description: str) -> dict[str, object]:
    return {"200": {"description": description, "content": {"application/json": {"schema": _STATUS}}}}


async def health(_request: Request) -> Response:
    """Say that the server lives."""
    return json_response({"status": "alive"})


async def ready(request: Request) -> Response:
    """Say that the log can be read; a problem document says that it cannot."""
    await run_sync(served(request).log.topics)
    return json_response({"status": "ready"})


ROUTES: tuple[ApiRoute, ...] = (
    ApiRoute("GET", "/health", health, None, "Whether the server lives", responses=_told("it does")),
    ApiRoute("GET", "/ready", ready, None, "Whether the log can be used", responses=_told("it can")),
)
