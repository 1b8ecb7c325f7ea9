"""Signed deliveries, and a client that posts them, for tests of webhooks."""

from __future__ import annotations

import base64
import hashlib
import hmac
import http.client
import json
import time
from typing import Any, NamedTuple

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


class Answer(NamedTuple):
    """What a webhook says."""

    status: int
    type: str
    body: dict[str, Any]


def signed(id: str, body: bytes, sent: int | None = None) -> dict[str, str]:
    """Return the headers of Standard Webhooks."""
    at = str(int(time.time()) if sent is None else sent)
    key = base64.b64decode(SECRET.removeprefix("whsec_"))
    digest = hmac.new(key, f"{id}.{at}.".encode() + body, hashlib.sha256).digest()
    signature = "v1," + base64.b64encode(digest).decode()
    return {"Webhook-Id": id, "Webhook-Timestamp": at, "Webhook-Signature": signature}


def post(address: str, body: bytes, headers: dict[str, str], method: str = "POST") -> Answer:
    """Post a body to ``http://HOST:PORT/PATH``."""
    host, _, path = address.removeprefix("http://").partition("/")
    connection = http.client.HTTPConnection(host, timeout=30)
    try:
        connection.request(method, f"/{path}", body, headers)
        answer = connection.getresponse()
        return Answer(answer.status, answer.headers.get_content_type(), json.loads(answer.read()))
    finally:
        connection.close()
