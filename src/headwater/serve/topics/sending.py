"""``POST /v1/topics/{topic}``: events are checked, appended whole or not at all, and their position told."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

from anyio.to_thread import run_sync
from starlette.requests import Request
from starlette.responses import Response

from headwater.durations import parse_instant
from headwater.errors import HeadwaterError, UnknownTopic
from headwater.serve.http.answer import json_response
from headwater.serve.http.header_fields import HeaderFields, header_fields
from headwater.serve.http.problem import HttpProblem
from headwater.serve.http.route import ApiRoute, Parameter
from headwater.serve.http.served import served
from headwater.serve.topics.body import Body, media_type
from headwater.serve.topics.event_sender import ByteReservation, EventSender
from headwater.serve.topics.submission import Sent, Submission

KEY_LENGTH = 255
REPEATED = "idempotency-replayed"


async def send(request: Request) -> Response:
    """Append the events of a request."""
    ingest: EventSender = request.app.state.ingest
    topic = request.path_params["topic"]
    fields = header_fields(request.scope)
    kind, key = media_type(fields.get("content-type", "")), _key(fields)
    with ingest.reserve() as waiting:
        body = Body(await _read(request, fields, waiting, served(request).settings.body_bytes), kind)
        times = _time(fields, "headwater-sent"), _time(fields, "headwater-occurred")
        sent = await _appended(ingest, topic, lambda: _submission(body, key, times))
    headers = {REPEATED: "true"} if sent.repeated else None
    return json_response({"position": sent.position, "rows": sent.rows}, headers=headers)


def _submission(body: Body, key: str | None, times: tuple[datetime | None, datetime | None]) -> Submission:
    return Submission(body, key, *times, asyncio.get_running_loop().create_future())


async def _appended(ingest: EventSender, topic: str, submission: Any) -> Sent:
    for attempt in (1, 2):
        group = ingest.existing(topic)
        if group is None:
            group = await run_sync(ingest.opened, topic, asyncio.get_running_loop())
        submitted = submission()
        try:
            group.submit(submitted)
            sent: Sent = await submitted.outcome
            return sent
        except UnknownTopic:  # it was deleted; there may be another one of that name now
            await run_sync(ingest.forget, topic, group)
            if attempt == 2:
                raise
    raise AssertionError("it has returned or raised")


async def _read(request: Request, fields: HeaderFields, waiting: ByteReservation, most: int) -> bytes:
    """Return the body; one that is too large is refused before it is read, or while it is."""
    declared = fields.get("content-length", "")
    if declared.isdecimal() and int(declared) > most:
        raise _too_large(most)
    parts, more = list[bytes](), True
    while more:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise HttpProblem(400, "the request ended in the middle")
        part, more = message.get("body", b""), message.get("more_body", False)
        if waiting.size + len(part) > most:
            raise _too_large(most)
        waiting.add(len(part))
        parts.append(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _too_large(most: int) -> HttpProblem:
    return HttpProblem(
        413, "the body is too large", detail=f"the limit is {most:,} bytes", hint="send less at once"
    )


def _key(fields: HeaderFields) -> str | None:
    key = fields.get("idempotency-key")
    if key is not None and not (0 < len(key) <= KEY_LENGTH and key.isascii() and key.isprintable()):
        raise HttpProblem(
            400,
            "the Idempotency-Key cannot be used",
            hint=f"it is 1 to {KEY_LENGTH} printable ASCII characters",
        )
    return key


def _time(fields: HeaderFields, header: str) -> datetime | None:
    text = fields.get(header)
    if text is None:
        return None
    try:
        return parse_instant(text).astimezone(UTC)
    except (HeadwaterError, OverflowError):
        raise HttpProblem(
            400, f'header "{header}" is no time', hint='write ISO 8601, as "2026-01-02T03:04:05Z"'
        ) from None


_SENT = {
    "type": "object",
    "required": ["position", "rows"],
    "properties": {"position": {"type": "string"}, "rows": {"type": "integer", "minimum": 0}},
}
_TOPIC = Parameter("topic", "the topic's name", "path", {"type": "string", "minLength": 1})
ROUTES: tuple[ApiRoute, ...] = (
    ApiRoute(
        "POST",
        "/topics/{topic}",
        send,
        "send",
        "Append one event, or a batch that goes in whole or not at all",
        (
            _TOPIC,
            Parameter(
                "Idempotency-Key",
                "a name for this request: sent again, also after a restart, it stores nothing twice",
                "header",
                {
                    "type": "string",
                    "minLength": 1,
                    "maxLength": KEY_LENGTH,
                    "pattern": "^[!-~]([ -~]*[!-~])?$",
                },
            ),
            Parameter(
                "Headwater-Sent",
                "when it was sent, by the sender's clock",
                "header",
                {"type": "string", "format": "date-time"},
            ),
            Parameter(
                "Headwater-Occurred",
                "when its events happened, by the sender's clock, where they have no event time",
                "header",
                {"type": "string", "format": "date-time"},
            ),
        ),
        {
            "required": True,
            "content": {
                "application/json": {"schema": {}},
                "application/x-ndjson": {"schema": {"type": "string"}},
                "application/vnd.apache.arrow.stream": {"schema": {"type": "string", "format": "binary"}},
            },
        },
        {
            "200": {
                "description": "where the events are: durable, and the position after the last of them",
                "content": {"application/json": {"schema": _SENT}},
            }
        },
        subject="topic",
    ),
)
