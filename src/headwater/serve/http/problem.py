"""Errors as problem documents (RFC 9457), with our detail and hint.

Invariant: an answer tells what a ``HeadwaterError`` tells and nothing else: no path, no traceback, no secret.
"""

from __future__ import annotations

import logging

import orjson
from starlette.exceptions import HTTPException
from starlette.responses import Response

from headwater import errors
from headwater.errors import HeadwaterError

MEDIA_TYPE = "application/problem+json"
_STATUS: tuple[tuple[type[HeadwaterError], int], ...] = (
    (errors.UnknownTopic, 404),
    (errors.UnknownView, 404),
    (errors.RecordTooLarge, 413),
    (errors.RowError, 422),
    (errors.BufferFull, 429),
    (errors.OffsetLost, 410),
    (errors.Behind, 504),
    (errors.Fenced, 409),
    (errors.TopicExists, 409),
    (errors.TopicError, 400),
    (errors.UsageError, 400),
    (errors.LogUnavailable, 503),
    (errors.SinkUnavailable, 503),
    (errors.SourceUnavailable, 503),
)
"""The first kind that fits counts."""
_KINDS: tuple[tuple[type[HeadwaterError], str], ...] = (
    (errors.UnknownTopic, "unknown_topic"),
    (errors.UnknownView, "unknown_view"),
)
"""What a program is told by ``kind``, where the status does not tell it."""
_UNTOLD = {503: "the log, or a store of views, cannot be used now"}
"""What is said of errors that name files and servers, which is for those who read the server's own log."""
_log = logging.getLogger("headwater")


class HttpProblem(HeadwaterError):
    """An error that has a status of its own: a missing token, a body of the wrong type."""

    kind: str | None = None

    def __init__(
        self,
        status: int,
        message: str,
        *,
        detail: str | None = None,
        hint: str | None = None,
        retry_after: int | None = None,
        challenge: bool = False,
    ):
        super().__init__(message, detail=detail, hint=hint)
        self.status, self.retry_after, self.challenge = status, retry_after, challenge


class NoRow(HttpProblem):
    """A view is there, and has no row with a key."""

    kind = "no_row"

    def __init__(self, view: str):
        super().__init__(404, f'view "{view}" has no row with that key')


def status_of(error: HeadwaterError) -> int:
    """Return the HTTP status that an error is told with."""
    if isinstance(error, HttpProblem):
        return error.status
    return next((status for kind, status in _STATUS if isinstance(error, kind)), 500)


def tellable(error: HeadwaterError) -> HeadwaterError:
    """Return what a client is told of an error; one that names files or servers goes to our own log."""
    status = status_of(error)
    if status < 500 or isinstance(error, HttpProblem | errors.Behind):
        return error
    _log.warning("%s", error)
    return HttpProblem(status, _UNTOLD.get(status, "the server failed"), hint="its log says more")


def problem_response(error: HeadwaterError, headers: dict[str, str] | None = None) -> Response:
    """Return the problem document of an error."""
    error, status = tellable(error), status_of(error)
    after = getattr(error, "retry_after", None) or (1 if status in (429, 503) else None)
    if after is not None:
        headers = {**(headers or {}), "retry-after": str(after)}
    if getattr(error, "challenge", False):
        headers = {**(headers or {}), "www-authenticate": "Bearer"}
    document = {
        "type": "about:blank",
        "title": error.message,
        "status": status,
        "kind": _kind_of(error),
        "detail": error.detail,
        "hint": error.hint,
        "row": getattr(error, "row", None),
        "column": getattr(error, "column", None),
    }
    body = orjson.dumps({name: value for name, value in document.items() if value is not None})
    return Response(body, status, headers, MEDIA_TYPE)


def exception_response(error: HTTPException) -> Response:
    """Return the problem document of what a router raises."""
    message = "there is nothing at this path" if error.status_code == 404 else error.detail.lower()
    return problem_response(HttpProblem(error.status_code, message), dict(error.headers or {}))


DEFECT = HttpProblem(500, "the server failed", hint="its log says more")


def _kind_of(error: HeadwaterError) -> str | None:
    if isinstance(error, HttpProblem):
        return error.kind
    return next((name for kind, name in _KINDS if isinstance(error, kind)), None)
