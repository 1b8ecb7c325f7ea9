"""Which browsers may subscribe."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from browser_kit import SubscribedBrowser
from headwater.errors import UsageError
from headwater.sinks.push import subscriptions as module
from headwater.sinks.push.subscriptions import PushSubscriptions

GOOD = SubscribedBrowser("https://updates.push.services.mozilla.com/wpush/v2/abc").subscription


def test_a_browser_subscribes_and_goes(tmp_path: Path) -> None:
    with PushSubscriptions(tmp_path) as first:
        first.subscribe(GOOD)
        first.subscribe(GOOD)
        secret = first.secret()
    with PushSubscriptions(tmp_path) as again:
        assert again.endpoints() == [GOOD["endpoint"]]
        assert again.secret() == secret
        assert again.unsubscribe(GOOD["endpoint"]) and not again.unsubscribe(GOOD["endpoint"])
        assert again.find(GOOD["endpoint"]) is None
    assert (tmp_path / "push.db").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    "wrong",
    [
        {"endpoint": "https://internal.example/"},
        {"endpoint": "http://fcm.googleapis.com/send/1"},
        {"endpoint": "https://evilfcm.googleapis.com.attacker.example/"},
        {"endpoint": "https://notfcm.googleapis.com.example/"},
        {"endpoint": "https://fcm.googleapis.com@attacker.example/"},
        {"endpoint": "https://fcm.googleapis.com/" + "a" * 2000},
        {"endpoint": None},
        {"keys": None},
        {"keys": {}},
        {"keys": {"p256dh": "!", "auth": 1}},
        {"keys": {**GOOD["keys"], "auth": "AAAA"}},
    ],
)
def test_what_is_no_subscription_is_refused(tmp_path: Path, wrong: dict[str, Any]) -> None:
    with PushSubscriptions(tmp_path) as subscriptions:
        with pytest.raises(UsageError):
            subscriptions.subscribe({**GOOD, **wrong})
        assert subscriptions.endpoints() == []


def test_so_many_may_subscribe_and_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST", 2)
    with PushSubscriptions(tmp_path) as subscriptions:
        for number in range(2):
            subscriptions.subscribe({**GOOD, "endpoint": f"{GOOD['endpoint']}{number}"})
        with pytest.raises(UsageError, match="no more may"):
            subscriptions.subscribe(GOOD)
        subscriptions.subscribe({**GOOD, "endpoint": f"{GOOD['endpoint']}1"})
