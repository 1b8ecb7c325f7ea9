"""Signatures of Standard Webhooks, of what is sent and of what is received.

By them a receiver knows who sent a message, and that it is whole.

Invariant: a secret is never part of a message or an error.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Sequence

from headwater.errors import UsageError

PREFIX = "whsec_"
VERSION = "v1,"
"""What is before a signature: HMAC-SHA256, by a secret that both sides have."""
_LEAST, _MOST = 24, 64
_HINT = "make one: python -c \"import base64,os; print('whsec_'+base64.b64encode(os.urandom(32)).decode())\""


def signing_keys(secret: str | Sequence[str]) -> tuple[bytes, ...]:
    """Return the keys of one secret, or of several while they are exchanged; refuse what is none.

    >>> len(signing_keys("whsec_" + base64.b64encode(bytes(32)).decode())[0])
    32
    """
    secrets = [secret] if isinstance(secret, str) else list(secret)
    if not secrets:
        raise UsageError("a webhook needs a secret", hint=_HINT)
    return tuple(signing_key(each) for each in secrets)


def signing_key(secret: str, hint: str = _HINT) -> bytes:
    """Return the bytes that a secret of Standard Webhooks stands for; refuse what is none."""
    try:
        key = base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not secret.startswith(PREFIX) or not _LEAST <= len(key) <= _MOST:
        raise UsageError(
            "the secret of a webhook is no secret of Standard Webhooks",
            detail=f'it is "{PREFIX}" and {_LEAST} to {_MOST} bytes as base64',
            hint=hint,
        )
    return key


def signed_headers(keys: Sequence[bytes], id: str, timestamp: int, body: bytes) -> dict[str, str]:
    """Return the headers that sign a message."""
    signatures = [signature(key, id, str(timestamp), body) for key in keys]
    return {
        "webhook-id": id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(VERSION + each for each in signatures),
    }


def signature(key: bytes, id: str, timestamp: str, body: bytes) -> str:
    """Return the signature of a message, as it stands behind its version."""
    content = b".".join((id.encode(), timestamp.encode(), body))
    return base64.b64encode(hmac_sha256(key, content)).decode()


def hmac_sha256(key: bytes, content: bytes) -> bytes:
    """Return the digest of a content by which one who has the key knows it."""
    return hmac.new(key, content, hashlib.sha256).digest()
