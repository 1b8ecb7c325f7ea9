"""Which browsers of a pipeline's people get notifications: a file in the pipeline's home.

What a browser hands over names an address to which this machine will post, so only known push services are
taken. Invariant: what is stored was checked, the file is its owner's alone, and the private key by which push
services know us never leaves it but to sign.
"""

from __future__ import annotations

import base64
import binascii
import os
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headwater import durable
from headwater.closing import Closing
from headwater.errors import UsageError
from headwater.sinks.delivery.http_client import http_url
from headwater.stores.sqlite.connection import FileKind, Writer

SERVICES = (
    "fcm.googleapis.com",
    "push.services.mozilla.com",
    "notify.windows.com",
    "push.apple.com",
)
"""Hosts of push services, each with those below it."""
MOST = 1000
"""As many browsers may subscribe."""
_LONGEST = 2000
_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
"""Of the curve P-256: a private key is below it."""
_TABLES = """
CREATE TABLE IF NOT EXISTS subscriptions (
    endpoint TEXT PRIMARY KEY, key BLOB NOT NULL, auth BLOB NOT NULL, made REAL NOT NULL
);
CREATE TABLE IF NOT EXISTS identity (one INTEGER PRIMARY KEY CHECK (one = 1), secret BLOB NOT NULL);
"""
PUSH = FileKind("push subscriptions", 0x6877_7075, 1, _TABLES, "delete the file; browsers subscribe anew")


class SubscriptionsFull(UsageError):
    """As many browsers have subscribed as may."""


@dataclass(frozen=True)
class PushSubscription:
    """One browser."""

    endpoint: str
    key: bytes
    """Its public key, an uncompressed point of P-256."""
    auth: bytes


class PushSubscriptions(Closing):
    """The browsers that have subscribed, and the key by which they know us."""

    def __init__(self, home: Path, services: Sequence[str] = SERVICES):
        durable.make(home, private=True)
        file = home / "push.db"
        if not file.exists():
            os.close(os.open(file, os.O_CREAT | os.O_RDWR, 0o600))
        self._writer, self._services = Writer(file, "fsync", PUSH), services

    def subscribe(self, given: Mapping[str, Any]) -> None:
        """Store what ``PushSubscription.toJSON()`` of a browser is; one that is there is replaced."""
        one = self._checked(given)
        with self._writer.transaction() as db:
            (count,) = db.execute(
                "SELECT count(*) FROM subscriptions WHERE endpoint <> ?", (one.endpoint,)
            ).fetchone()
            if count >= MOST:
                raise SubscriptionsFull(f"{count:,} browsers have subscribed, and no more may")
            row = (one.endpoint, one.key, one.auth, time.time())
            db.execute("INSERT OR REPLACE INTO subscriptions VALUES (?, ?, ?, ?)", row)

    def unsubscribe(self, endpoint: str) -> bool:
        """Forget a browser; tell whether it was there."""
        with self._writer.transaction() as db:
            done = db.execute("DELETE FROM subscriptions WHERE endpoint = ?", (endpoint,))
            return done.rowcount > 0

    def endpoints(self) -> list[str]:
        """Return the addresses of all browsers."""
        with self._writer.transaction() as db:
            return [row[0] for row in db.execute("SELECT endpoint FROM subscriptions ORDER BY made")]

    def find(self, endpoint: str) -> PushSubscription | None:
        """Return the browser with an address, if it still wants to be told."""
        with self._writer.transaction() as db:
            query = "SELECT endpoint, key, auth FROM subscriptions WHERE endpoint = ?"
            row = db.execute(query, (endpoint,)).fetchone()
        return None if row is None else PushSubscription(*row)

    def secret(self) -> int:
        """Return the private key by which push services know us; it is made when it is first asked for."""
        with self._writer.transaction() as db:
            made = (secrets.randbelow(_ORDER - 1) + 1).to_bytes(32, "big")
            db.execute("INSERT OR IGNORE INTO identity VALUES (1, ?)", (made,))
            return int.from_bytes(db.execute("SELECT secret FROM identity").fetchone()[0], "big")

    def close(self) -> None:
        """Close the file."""
        self._writer.close()

    def _checked(self, given: Mapping[str, Any]) -> PushSubscription:
        endpoint, keys = given.get("endpoint"), given.get("keys")
        if not isinstance(endpoint, str) or not isinstance(keys, Mapping) or len(endpoint) > _LONGEST:
            raise _no_subscription("it has an endpoint and keys")
        host = http_url(endpoint, "push subscription").hostname or ""
        known = any(host == each or host.endswith(f".{each}") for each in self._services)
        if not known or not (endpoint.startswith("https://") or host == "127.0.0.1"):
            raise _no_subscription("its endpoint is at no push service that is known")
        key, auth = _bytes(keys.get("p256dh")), _bytes(keys.get("auth"))
        if len(key) != 65 or key[0] != 4 or len(auth) != 16:
            raise _no_subscription("its keys have another form")
        return PushSubscription(endpoint, key, auth)


def _bytes(text: object) -> bytes:
    if not isinstance(text, str):
        return b""
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        return b""


def _no_subscription(detail: str) -> UsageError:
    hint = "pass what PushSubscription.toJSON() of a browser returns"
    return UsageError("this is no push subscription", detail=detail, hint=hint)
