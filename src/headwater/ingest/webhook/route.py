"""The HTTP side of a webhook, as a route that any Starlette application can mount.

Invariant: a body is read no further than its limit, and nothing is written before all checks have passed.
What is refused is answered with a problem document (RFC 9457) that tells nothing of the inside.
"""

from __future__ import annotations

import asyncio
import logging
import time

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from headwater.errors import HeadwaterError
from headwater.ingest.status import IngestCounts
from headwater.ingest.webhook.deliveries import Deliveries, is_refusal
from headwater.ingest.webhook.receiver import (
    BODY_BYTES,
    RefusedDelivery,
    WebhookDelivery,
    WebhookReceiver,
    too_large,
)

BODY_SECONDS = 30.0
"""How long a sender may take for its body."""
_log = logging.getLogger("headwater")


def webhook_route(
    path: str, receiver: WebhookReceiver, deliveries: Deliveries, counts: IngestCounts | None = None
) -> Route:
    """Return the route at which a sender posts its deliveries.

    - ``path``: where it is, ``"/hooks/billing"``.
    - ``receiver``: checks signatures.
    - ``deliveries``: where events go.
    - ``counts=None``: where deliveries and refusals are counted.
    """
    endpoint = _Endpoint(receiver, deliveries, counts or IngestCounts())
    return Route(path, endpoint.post, methods=["POST"])


class _Endpoint:
    """Answers deliveries."""

    def __init__(self, receiver: WebhookReceiver, deliveries: Deliveries, counts: IngestCounts):
        self._receiver, self._deliveries, self._counts = receiver, deliveries, counts

    async def post(self, request: Request) -> Response:
        """Take a delivery, or say why not."""
        self._counts.add(deliveries=1)
        body = await _body(request)
        taken = body if isinstance(body, RefusedDelivery) else self._received(request, body)
        answer = taken if isinstance(taken, RefusedDelivery) else await self._stored(taken)
        if isinstance(answer, RefusedDelivery):
            self._counts.add(refused=1)
            return problem(answer)
        return answer

    def _received(self, request: Request, body: bytes) -> WebhookDelivery | RefusedDelivery:
        return self._receiver.receive(dict(request.headers), body, time.time())

    async def _stored(self, delivery: WebhookDelivery) -> Response | RefusedDelivery:
        try:
            stored = await run_in_threadpool(self._deliveries.add, delivery)
        except HeadwaterError as error:
            if is_refusal(error):
                return RefusedDelivery(400, "event does not fit its topic", error.message)
            _log.warning("webhook: %s", error.message)
            return RefusedDelivery(
                503, "event cannot be stored now", "send it again later, under the same id"
            )
        self._counts.add(rows=not stored.is_duplicate, duplicates=stored.is_duplicate)
        told = {"duplicate": stored.is_duplicate, "position": stored.position.brief}
        return JSONResponse({"delivery": delivery.id, **told})


def problem(refused: RefusedDelivery) -> Response:
    """Return a refusal as a problem document."""
    told = {"type": "about:blank", "title": refused.title, "status": refused.status, "detail": refused.detail}
    headers = {"Retry-After": "5"} if refused.status == 503 else {}
    return JSONResponse(told, refused.status, headers, media_type="application/problem+json")


async def _body(request: Request) -> bytes | RefusedDelivery:
    """Return the body, of which no more than the limit is read."""
    length = request.headers.get("content-length", "0")
    if length.isdecimal() and int(length) > BODY_BYTES:
        return too_large()
    parts, size = list[bytes](), 0
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for part in request.stream():
                parts.append(part)
                size += len(part)
                if size > BODY_BYTES:
                    return too_large()
    except TimeoutError:
        return RefusedDelivery(408, "body is too slow", f"it has to come within {BODY_SECONDS:.0f} seconds")
    except ClientDisconnect:
        return RefusedDelivery(400, "body is not whole", "the connection broke off")
    return b"".join(parts)
