"""Encryption and signatures of web push, by other implementations."""

from __future__ import annotations

from pathlib import Path

import py_vapid
import pytest
from hypothesis import given
from hypothesis import strategies as st

from browser_kit import SubscribedBrowser
from headwater.sinks.push.encryption import LARGEST, encrypted, public_key_text, vapid_header
from headwater.sinks.push.subscriptions import PushSubscription, PushSubscriptions

BROWSER = SubscribedBrowser("https://fcm.googleapis.com/send/1")


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> PushSubscription:
    with PushSubscriptions(tmp_path_factory.mktemp("home")) as subscriptions:
        subscriptions.subscribe(BROWSER.subscription)
        found = subscriptions.find(BROWSER.endpoint)
    assert found is not None
    return found


@given(message=st.binary(max_size=LARGEST))
def test_the_browser_reads_what_was_sent(stored: PushSubscription, message: bytes) -> None:
    body = encrypted(message, stored)
    assert BROWSER.read(body) == message
    assert len(body) <= 4096


def test_a_push_service_can_tell_who_sends(tmp_path: Path) -> None:
    with PushSubscriptions(tmp_path) as subscriptions:
        secret = subscriptions.secret()
    header = vapid_header("https://fcm.googleapis.com/send/1", secret, "mailto:ops@shop.example")
    assert py_vapid.Vapid02.verify(header)
    assert header.endswith(f"k={public_key_text(secret)}")
    assert not py_vapid.Vapid02.verify(header.replace("t=e", "t=f", 1))
