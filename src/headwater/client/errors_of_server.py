"""What a server refuses, as the errors that the same call would raise without one.

Invariant: an error tells what the problem document tells: title, detail and hint.
"""

from __future__ import annotations

from typing import Any

import orjson

from headwater import errors
from headwater.errors import HeadwaterError

_KINDS: dict[int, type[HeadwaterError]] = {
    400: errors.UsageError,
    404: errors.UsageError,
    413: errors.RecordTooLarge,
    422: errors.RowError,
    429: errors.BufferFull,
    503: errors.LogUnavailable,
    504: errors.Behind,
}
_UNKNOWN: dict[str, type[HeadwaterError]] = {
    "unknown_topic": errors.UnknownTopic,
    "unknown_view": errors.UnknownView,
}
"""Of which kind something is not there, as the document tells it."""
NO_ROW = "no_row"


class RequestRefused(HeadwaterError):
    """A server has refused a request for a reason that only servers have: a token, a method, a defect."""

    def __init__(self, status: int, message: str, *, detail: str | None = None, hint: str | None = None):
        super().__init__(message, detail=detail, hint=hint)
        self.status = status


def server_error(status: int, body: bytes) -> HeadwaterError:
    """Return the error that an answer tells."""
    document = _document(body)
    message = str(document.get("title", f"the server answered {status}"))
    told = {"detail": document.get("detail"), "hint": document.get("hint")}
    if status == 410 or "missed" in document:
        return lost(document)
    if status == 422 and "row" in document:
        row = int(document["row"])
        detail = str(told["detail"] or "").removeprefix(f"row {row}: ") or None
        return errors.RowError(message, detail=detail, hint=told["hint"], row=row)
    kind = _UNKNOWN.get(str(document.get("kind"))) or _KINDS.get(status)
    return RequestRefused(status, message, **told) if kind is None else kind(message, **told)


def is_no_row(status: int, body: bytes) -> bool:
    """Tell whether an answer says that a view is there and has no row with a key."""
    return status == 404 and _document(body).get("kind") == NO_ROW


def lost(document: dict[str, Any]) -> errors.OffsetLost:
    """Return the error for changes or records that are no longer kept."""
    return errors.OffsetLost(
        str(document.get("title", "what was asked for is gone")),
        detail=str(document.get("detail", "")),
        hint=str(document.get("hint", "")),
        missed=int(document.get("missed", 0)),
        earliest=int(document.get("earliest", 0)),
    )


def _document(body: bytes) -> dict[str, Any]:
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        return {}
    return document if isinstance(document, dict) else {}
