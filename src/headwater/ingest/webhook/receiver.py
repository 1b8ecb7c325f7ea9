"""Whether a delivery is taken: its signature, its age, its id, and that it is JSON. Nothing is written here.

Invariant: the same headers, bytes and time give the same answer, and an answer tells a stranger nothing but
which check failed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import orjson

from headwater.durations import interval
from headwater.errors import UsageError, nearest
from headwater.ingest.webhook.secrets import Secrets
from headwater.ingest.webhook.signatures import (
    SCHEMES,
    NotSigned,
    SignedDelivery,
    WrongSignature,
    standard_key,
)
from headwater.record import MAX_BYTES

BODY_BYTES = MAX_BYTES - 10_000
"""Bytes that a body may have: it has to fit into a record."""
ID_LENGTH = 500


@dataclass(frozen=True)
class WebhookDelivery:
    """A delivery that is genuine, recent and readable."""

    id: str
    type: str | None
    body: bytes


@dataclass(frozen=True)
class RefusedDelivery:
    """Why a delivery is not taken, as it is answered."""

    status: int
    title: str
    detail: str


class WebhookReceiver:
    """Checks deliveries of one sender.

    - ``scheme``: ``"standard"`` (Standard Webhooks), ``"github"`` or ``"stripe"``.
    - ``secrets``: what the sender signs with, by ``read_secrets``.
    - ``window="5 minutes"``: how far a signed time may be from now.
    """

    def __init__(self, scheme: str, secrets: Secrets, window: str | timedelta = "5 minutes"):
        if scheme not in SCHEMES:
            hint = nearest(scheme, SCHEMES) or f"use {', '.join(SCHEMES)}"
            raise UsageError(f'there is no kind of signature named "{scheme}"', hint=hint)
        if scheme == "standard":
            for each in secrets.values:
                standard_key(each)  # refused now, and not when a delivery comes
        self._verify, self._secrets = SCHEMES[scheme], secrets
        self._window = interval(window).total_seconds()

    def receive(
        self, headers: Mapping[str, str], body: bytes, now: float
    ) -> WebhookDelivery | RefusedDelivery:
        """Return the delivery, or why it is refused; ``now`` is in seconds since 1970."""
        if len(body) > BODY_BYTES:
            return too_large()
        try:
            signed = self._verify(
                {name.lower(): value for name, value in headers.items()}, body, self._secrets
            )
        except NotSigned as missing:
            return RefusedDelivery(400, "delivery is not signed", str(missing))
        except WrongSignature:
            return RefusedDelivery(401, "signature is wrong", "no signature fits the body and the secret")
        if signed.sent is not None and abs(now - signed.sent) > self._window:
            return RefusedDelivery(
                401, "delivery is too old", "it was signed too long ago, or is of the future"
            )
        return _parsed(signed, body)


def too_large() -> RefusedDelivery:
    """Return the answer to a body that is too large."""
    return RefusedDelivery(413, "body is too large", f"a body may have {BODY_BYTES:,} bytes")


def _parsed(signed: SignedDelivery, body: bytes) -> WebhookDelivery | RefusedDelivery:
    try:
        event = orjson.loads(body)
    except orjson.JSONDecodeError:
        return RefusedDelivery(400, "body is not JSON", "an event is a JSON object")
    if not isinstance(event, dict):
        return RefusedDelivery(400, "body is not an event", "an event is a JSON object")
    id = signed.id if signed.id is not None else _text(event.get("id"))
    if not id or len(id) > ID_LENGTH:
        return RefusedDelivery(400, "delivery has no id", "without one, repeats cannot be told")
    return WebhookDelivery(id, signed.type or _text(event.get("type")), body)


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
