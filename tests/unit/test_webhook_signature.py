"""Signatures, by an independent implementation."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks import Webhook, WebhookVerificationError

from headwater.durations import now
from headwater.errors import UsageError
from headwater.webhook_signature import signed_headers, signing_keys


@given(st.binary(min_size=24, max_size=64), st.dictionaries(st.text(), st.text()))
def test_another_implementation_agrees(key: bytes, message: dict[str, str]) -> None:
    import json

    body = json.dumps(message).encode()
    secret = "whsec_" + base64.b64encode(key).decode()
    headers = signed_headers(signing_keys(secret), "msg_1", now() // 1_000_000, body)
    assert Webhook(secret).verify(body, headers) == message
    with pytest.raises(WebhookVerificationError):
        Webhook(secret).verify(body + b" ", headers)


@pytest.mark.parametrize(
    "secret", ["", [], "whsec_", "secret", "whsec_c2hvcnQ=", "whsec_!", "whsec_" + "A" * 120]
)
def test_what_is_no_secret_is_refused_and_not_shown(secret: str | list[str]) -> None:
    with pytest.raises(UsageError) as told:
        signing_keys(secret)
    assert not secret or len(secret) < 8 or str(secret) not in str(told.value)
