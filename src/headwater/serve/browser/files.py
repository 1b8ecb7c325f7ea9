"""The route of the browser client's one file."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

PATH = "/client/headwater.js"


async def client_module(_request: Request) -> Response:
    """Return the module."""
    headers = {"Cache-Control": "no-cache"}
    return Response(_module(), headers=headers, media_type="text/javascript")


@cache
def _module() -> bytes:
    return (Path(__file__).parent / "headwater.js").read_bytes()


PAGES = (Route(PATH, client_module),)
