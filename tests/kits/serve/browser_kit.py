"""A browser that has subscribed to notifications: it has a key, and reads what is encrypted for it."""

from __future__ import annotations

import base64
import os
from typing import Any

import http_ece
import orjson
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat


class SubscribedBrowser:
    """One browser, whose push service is at a URL."""

    def __init__(self, endpoint: str):
        self.endpoint = endpoint
        self._key, self._auth = ec.generate_private_key(ec.SECP256R1()), os.urandom(16)

    @property
    def subscription(self) -> dict[str, Any]:
        """What ``PushSubscription.toJSON()`` returns."""
        point = self._key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
        keys = {"p256dh": _text(point), "auth": _text(self._auth)}
        return {"endpoint": self.endpoint, "expirationTime": None, "keys": keys}

    def read(self, body: bytes) -> bytes:
        """Decrypt, by another implementation than ours."""
        plain: bytes = http_ece.decrypt(
            body, private_key=self._key, auth_secret=self._auth, version="aes128gcm"
        )
        return plain

    def notification(self, body: bytes) -> dict[str, Any]:
        said: dict[str, Any] = orjson.loads(self.read(body))
        return said


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
