"""Tickets: what a page shows in a URL where a browser lets it set no header, for some minutes.

A token must not stand in a URL, which browsers and proxies write down. A ticket stands for a token, ends by
itself, and counts only as long as its token does. Invariant: a ticket is of no use after its time, after
its token was revoked, or to another server process.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
import time

SECONDS = 300


class Tickets:
    """Makes tickets and knows its own."""

    def __init__(self) -> None:
        self._secret = secrets.token_bytes(32)

    def issue(self, token: str, seconds: int = SECONDS) -> str:
        """Return a ticket that stands for the token of a name."""
        text = f"{int(time.time()) + seconds}.{token}".encode()
        return base64.urlsafe_b64encode(self._sign(text) + text).rstrip(b"=").decode()

    def token(self, ticket: str) -> str | None:
        """Return the name of the token that a ticket stands for; None if it is none, or too old."""
        try:
            data = base64.urlsafe_b64decode(ticket.encode() + b"=" * (-len(ticket) % 4))
        except (binascii.Error, ValueError):
            return None
        signature, text = data[:32], data[32:]
        if not hmac.compare_digest(signature, self._sign(text)):
            return None
        until, _, name = text.decode().partition(".")
        return name if int(until) >= time.time() else None

    def _sign(self, text: bytes) -> bytes:
        return hmac.new(self._secret, text, hashlib.sha256).digest()
