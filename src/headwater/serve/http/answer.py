"""Answers in JSON, as every route gives them."""

from __future__ import annotations

from typing import Any

import orjson
from starlette.responses import Response

JSON = "application/json"


def json_response(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Return an answer in JSON."""
    return Response(orjson.dumps(value), status, headers, JSON)
