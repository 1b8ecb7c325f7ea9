"""Bodies that say what to do: one small JSON object.

Invariant: what is larger is refused before it is read.
"""

from __future__ import annotations

from typing import Any

import orjson
from starlette.requests import Request

from headwater.serve.http.problem import HttpProblem

BODY_BYTES = 10_000


async def json_object(request: Request, hint: str) -> dict[str, Any]:
    """Return the object that a body is; ``hint`` says what to send where it is none."""
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > BODY_BYTES:
            raise HttpProblem(413, "the body is too large")
    try:
        found = orjson.loads(bytes(body))
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise HttpProblem(400, "the body is no JSON object", hint=hint)
    return found
