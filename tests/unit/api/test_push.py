"""What a web server calls when a browser subscribes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from browser_kit import SubscribedBrowser
from headwater import Pipeline, push, targets
from headwater.errors import UsageError


def test_sinks_that_notify_are_named(tmp_path: Path) -> None:
    shop = Pipeline("shop", log=f"file:{tmp_path / 'log'}")
    shop.source("orders", "item STRING")

    @shop.sink(targets.push("{item} is out", "mailto:ops@shop.example"))
    def told(orders: Any) -> Any:
        return orders

    @shop.sink(targets.mail("smtp://b.example", "c@d.example", "{item} is out", sender="a@b.example"))
    def mailed(orders: Any) -> Any:
        return orders

    assert push.sinks(shop) == ["told"]


def test_a_browser_subscribes_to_a_pipeline(tmp_path: Path) -> None:
    shop = Pipeline("shop", log=f"file:{tmp_path / 'log'}", home=tmp_path / "home")
    key = push.public_key(shop)
    assert (len(key), push.public_key(shop)) == (87, key)
    browser = SubscribedBrowser("https://fcm.googleapis.com/fcm/send/abc")
    push.subscribe(shop, browser.subscription)
    assert push.unsubscribe(shop, browser.endpoint) and not push.unsubscribe(shop, browser.endpoint)
    with pytest.raises(UsageError, match="no push subscription"):
        push.subscribe(shop, {"endpoint": "https://127.0.0.1/", "keys": {}})
