"""Messages to browsers are encrypted for each (RFC 8291), and signed by who sends them (VAPID, RFC 8292).

Invariant: a push service sees neither what a message says nor our private key.
"""

from __future__ import annotations

import base64
import os
import time
from urllib.parse import urlsplit

import orjson

from headwater.errors import UsageError
from headwater.sinks.push.subscriptions import PushSubscription

try:
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
except ModuleNotFoundError as error:
    if (error.name or "").split(".")[0] != "cryptography":
        raise
    raise UsageError(
        "support for web push is not installed", hint="run `pip install 'headwater[push]'`"
    ) from None

__all__ = ["LARGEST", "encrypted", "public_key_text", "vapid_header"]

LARGEST = 3993
"""Bytes that a message may have: a push service takes 4,096, encrypted."""
_RECORD = 4096
_VALID_SECONDS = 12 * 3600


def encrypted(message: bytes, to: PushSubscription) -> bytes:
    """Return a message as only one browser can read it."""
    ours = ec.generate_private_key(ec.SECP256R1())
    theirs = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), to.key)
    own, salt = _point(ours.public_key()), os.urandom(16)
    shared = _derived(ours.exchange(ec.ECDH(), theirs), to.auth, b"WebPush: info\0" + to.key + own, 32)
    key = _derived(shared, salt, b"Content-Encoding: aes128gcm\0", 16)
    nonce = _derived(shared, salt, b"Content-Encoding: nonce\0", 12)
    header = salt + _RECORD.to_bytes(4, "big") + bytes([len(own)]) + own
    return header + AESGCM(key).encrypt(nonce, message + b"\x02", None)


def vapid_header(endpoint: str, secret: int, contact: str) -> str:
    """Return the header that tells a push service who sends."""
    parts = urlsplit(endpoint)
    claims = {
        "aud": f"{parts.scheme}://{parts.netloc}",
        "exp": int(time.time()) + _VALID_SECONDS,
        "sub": contact,
    }
    signed = f"{_text(orjson.dumps({'typ': 'JWT', 'alg': 'ES256'}))}.{_text(orjson.dumps(claims))}"
    r, s = decode_dss_signature(_private(secret).sign(signed.encode(), ec.ECDSA(SHA256())))
    signature = _text(r.to_bytes(32, "big") + s.to_bytes(32, "big"))
    return f"vapid t={signed}.{signature},k={public_key_text(secret)}"


def public_key_text(secret: int) -> str:
    """Return the public key as browsers take it: ``applicationServerKey``."""
    return _text(_point(_private(secret).public_key()))


def _private(secret: int) -> ec.EllipticCurvePrivateKey:
    return ec.derive_private_key(secret, ec.SECP256R1())


def _point(key: ec.EllipticCurvePublicKey) -> bytes:
    return key.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)


def _derived(secret: bytes, salt: bytes, info: bytes, length: int) -> bytes:
    return HKDF(SHA256(), length, salt, info).derive(secret)


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
