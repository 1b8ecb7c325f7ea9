"""Signatures of webhooks: Standard Webhooks, GitHub's and Stripe's.

Invariant: a delivery is taken for genuine only if an HMAC-SHA256 over the bytes as they came, by one of the
secrets, equals a signature that came with them; they are compared in constant time.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from headwater.ingest.webhook.secrets import Secrets
from headwater.webhook_signature import PREFIX, VERSION, hmac_sha256, signature, signing_key

Headers = Mapping[str, str]
"""Names in lower case."""
SIGNATURES_AT_MOST = 20
"""Signatures of one delivery that are looked at; senders give one for each of their secrets."""


@dataclass(frozen=True)
class SignedDelivery:
    """What the headers of a genuine delivery say of it."""

    id: str | None
    """Its delivery id, if it has one there."""
    sent: int | None
    """When it was signed, in seconds since 1970, if that is signed too."""
    type: str | None = None


class NotSigned(Exception):
    """Headers that no signature can be read from: the message says what is missing."""


class WrongSignature(Exception):
    """No signature fits."""


Verify = Callable[[Headers, bytes, Secrets], SignedDelivery]


def verify_standard(headers: Headers, body: bytes, secrets: Secrets) -> SignedDelivery:
    """Check a delivery of Standard Webhooks: ``webhook-id``, ``webhook-timestamp``, ``webhook-signature``."""
    id, sent = _required(headers, "webhook-id"), _required(headers, "webhook-timestamp")
    signatures = _required(headers, "webhook-signature").split()
    given = [each.removeprefix(VERSION) for each in signatures if each.startswith(VERSION)]
    _check([signature(standard_key(each), id, sent, body) for each in secrets.values], given)
    return SignedDelivery(id, _seconds(sent, "webhook-timestamp"))


def verify_github(headers: Headers, body: bytes, secrets: Secrets) -> SignedDelivery:
    """Check a delivery of GitHub's: ``X-Hub-Signature-256``; its id and its time are not signed."""
    given = _required(headers, "x-hub-signature-256")
    expected = [hmac_sha256(each.encode(), body).hex() for each in secrets.values]
    _check(expected, [given.removeprefix("sha256=")] if given.startswith("sha256=") else [])
    id = _required(headers, "x-github-delivery")
    return SignedDelivery(id, None, headers.get("x-github-event"))


def verify_stripe(headers: Headers, body: bytes, secrets: Secrets) -> SignedDelivery:
    """Check a delivery of Stripe's: ``Stripe-Signature``; its id is in the body."""
    pairs = [part.strip().partition("=") for part in _required(headers, "stripe-signature").split(",")]
    sent = next((value for name, _, value in pairs if name == "t"), "")
    given = [value for name, _, value in pairs if name == "v1"]
    signed = sent.encode() + b"." + body
    _check([hmac_sha256(each.encode(), signed).hex() for each in secrets.values], given)
    return SignedDelivery(None, _seconds(sent, "stripe-signature"))


SCHEMES: dict[str, Verify] = {"standard": verify_standard, "github": verify_github, "stripe": verify_stripe}


def _required(headers: Headers, name: str) -> str:
    value = headers.get(name, "")
    if not value or len(value) > 4096:
        raise NotSigned(f"header {name} is missing" if not value else f"header {name} is too long")
    return value


def standard_key(secret: str) -> bytes:
    """Return the bytes of a secret: base64 behind ``whsec_``, or refused; any other is taken as it is."""
    if not secret.startswith(PREFIX):
        return secret.encode()
    return signing_key(secret, "set it to the secret that the sender signs with, whole")


def _check(expected: Iterable[str], given: list[str]) -> None:
    """Refuse unless one of the signatures is one of those expected; all are compared, whichever fits."""
    fits = [
        hmac.compare_digest(one.encode(), other.encode())
        for one in expected
        for other in given[:SIGNATURES_AT_MOST]
    ]
    if not any(fits):
        raise WrongSignature


def _seconds(text: str, header: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 16):
        raise NotSigned(f"header {header} has no time in seconds")
    return int(text)
