"""Whether a delivery is taken."""

from __future__ import annotations

import pytest

from headwater.errors import UsageError
from headwater.ingest.webhook.receiver import BODY_BYTES, RefusedDelivery, WebhookDelivery, WebhookReceiver
from headwater.ingest.webhook.secrets import Secrets
from webhook_kit import SECRET, signed

NOW = 1_800_000_000
RECEIVER = WebhookReceiver("standard", Secrets([SECRET]))


def received(body: bytes, sent: int = NOW, id: str = "one") -> WebhookDelivery | RefusedDelivery:
    return RECEIVER.receive(signed(id, body, sent), body, NOW)


def test_a_genuine_and_recent_event_is_taken() -> None:
    assert received(b'{"type": "paid"}', NOW - 299) == WebhookDelivery("one", "paid", b'{"type": "paid"}')


@pytest.mark.parametrize(
    ("body", "sent", "status"),
    [
        (b"{}", NOW - 301, 401),
        (b"{}", NOW + 301, 401),
        (b"{", NOW, 400),
        (b"[]", NOW, 400),
        (b"\xff", NOW, 400),
        (b" " * (BODY_BYTES + 1), NOW, 413),
    ],
)
def test_what_is_old_or_unreadable_or_too_large_is_refused(body: bytes, sent: int, status: int) -> None:
    refused = received(body, sent)
    assert isinstance(refused, RefusedDelivery)
    assert refused.status == status


def test_a_wrong_signature_comes_before_all_that_is_in_the_body() -> None:
    refused = RECEIVER.receive(signed("one", b"{}", NOW), b"{", NOW)
    assert isinstance(refused, RefusedDelivery)
    assert refused.status == 401


def test_an_id_that_is_too_long_is_refused() -> None:
    refused = received(b"{}", id="x" * 501)
    assert isinstance(refused, RefusedDelivery)
    assert refused.title == "delivery has no id"


def test_a_kind_of_signature_that_nobody_has_is_refused() -> None:
    with pytest.raises(UsageError, match='did you mean "stripe"'):
        WebhookReceiver("strip", Secrets([SECRET]))


@pytest.mark.parametrize(
    "secret", ["whsec_not base64!", "whsec_c2hvcnQ=", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS"]
)
def test_a_secret_that_is_damaged_is_refused_before_a_delivery_comes_and_not_shown(secret: str) -> None:
    with pytest.raises(UsageError, match="no secret of Standard Webhooks") as refused:
        WebhookReceiver("standard", Secrets([SECRET, secret]))
    assert secret not in str(refused.value)
    WebhookReceiver("stripe", Secrets([secret]))
    WebhookReceiver("standard", Secrets(["any other text"]))
