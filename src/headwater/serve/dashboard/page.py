"""The dashboard's page and its files: static, from the package, and from nowhere else.

Invariant: the page can load nothing but these files and call nothing but the server that it came from; a row
that contains markup stays text, for the policy forbids scripts and styles in HTML.
"""

from __future__ import annotations

from pathlib import Path

from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

STATIC = Path(__file__).parent / "static"
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    # Asked for again each time, and answered with 304: after an upgrade no old file meets a new one.
    "Cache-Control": "no-cache",
}


class DashboardFiles(StaticFiles):
    """The files beside the page, with its headers."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        """Return a file of the page."""
        response = await super().get_response(path, scope)
        response.headers.update(HEADERS)
        return response


async def page(_request: Request) -> Response:
    """Return the page."""
    return FileResponse(STATIC / "index.html", headers=HEADERS)


async def service_worker(_request: Request) -> Response:
    """Return what shows notifications: beside the page, for a worker may only act below its own address."""
    return FileResponse(STATIC / "service_worker.js", headers=HEADERS)


PAGE: tuple[BaseRoute, ...] = (
    Route("/", page, methods=["GET"]),
    Route("/service_worker.js", service_worker, methods=["GET"]),
    Mount("/static", DashboardFiles(directory=STATIC)),
)
"""The routes of the dashboard, beside those of the API."""
