"""Signatures, by the examples that their authors publish."""

from __future__ import annotations

import hashlib
import hmac

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.ingest.webhook.secrets import Secrets
from headwater.ingest.webhook.signatures import (
    SCHEMES,
    NotSigned,
    WrongSignature,
    verify_github,
    verify_standard,
    verify_stripe,
)

STANDARD = {
    "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
    "webhook-timestamp": "1614265330",
    "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
}
STANDARD_BODY = b'{"test": 2432232314}'
STANDARD_SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
GITHUB = {
    "x-hub-signature-256": "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17",
    "x-github-delivery": "72d3162e",
    "x-github-event": "push",
}


def stripe(body: bytes, secret: str) -> dict[str, str]:
    good = hmac.new(secret.encode(), b"1492774577." + body, hashlib.sha256).hexdigest()
    return {"stripe-signature": f"t=1492774577,v1={'0' * 64},v1={good},v0=x"}


def test_the_example_of_standard_webhooks_is_genuine_by_any_of_its_secrets() -> None:
    secrets = Secrets(["another secret", STANDARD_SECRET])
    found = verify_standard(STANDARD, STANDARD_BODY, secrets)
    assert (found.id, found.sent) == ("msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330)
    several = {**STANDARD, "webhook-signature": f"v1,AAAA v1a,x {STANDARD['webhook-signature']}"}
    assert verify_standard(several, STANDARD_BODY, secrets) == found


def test_the_example_of_github_is_genuine() -> None:
    found = verify_github(GITHUB, b"Hello, World!", Secrets(["It's a Secret to Everybody"]))
    assert (found.id, found.type, found.sent) == ("72d3162e", "push", None)


def test_one_of_several_signatures_of_stripe_is_enough() -> None:
    found = verify_stripe(stripe(b"{}", "whsec_test"), b"{}", Secrets(["whsec_test"]))
    assert (found.id, found.sent) == (None, 1492774577)


@given(st.integers(0, len(STANDARD_BODY) - 1), st.integers(1, 255))
def test_a_changed_byte_is_found(at: int, by: int) -> None:
    changed = bytearray(STANDARD_BODY)
    changed[at] ^= by
    with pytest.raises(WrongSignature):
        verify_standard(STANDARD, bytes(changed), Secrets([STANDARD_SECRET]))


@pytest.mark.parametrize("header", ["webhook-id", "webhook-timestamp"])
def test_a_changed_id_or_time_is_found(header: str) -> None:
    with pytest.raises(WrongSignature):
        verify_standard({**STANDARD, header: "1614265331"}, STANDARD_BODY, Secrets([STANDARD_SECRET]))


@pytest.mark.parametrize("scheme", SCHEMES)
def test_headers_without_a_signature_are_named(scheme: str) -> None:
    with pytest.raises(NotSigned, match=r"header .* is missing"):
        SCHEMES[scheme]({}, b"{}", Secrets(["a secret"]))


@pytest.mark.parametrize("given", ["", "sha1=757107ea", "757107ea0eb2509f", "sha256=", "sha256=é"])
def test_a_signature_of_another_form_is_wrong(given: str) -> None:
    with pytest.raises((WrongSignature, NotSigned)):
        verify_github({**GITHUB, "x-hub-signature-256": given}, b"Hello, World!", Secrets(["a secret"]))
