"""Notifications to browsers, through a push service of the test's own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import py_vapid
import pytest

from browser_kit import SubscribedBrowser
from delivery_kit import QUICK, Answer, Receiver, Request, batch, outbox, receiving, sink, until
from headwater.sinks.delivery.declaration import DeliveryDeclaration
from headwater.sinks.delivery.figures import delivery_status, set_aside
from headwater.sinks.push.declaration import declare_push
from headwater.sinks.push.subscriptions import PushSubscriptions


@pytest.fixture(scope="module")
def service() -> Iterator[Receiver]:
    with receiving() as started:
        yield started


def push(rate_limit: str = "100 per hour") -> DeliveryDeclaration:
    declared = declare_push("{k} has {n}", "mailto:ops@shop.example", "{n}", "/{k}", rate_limit)
    return replace(declared, policy=QUICK)


def subscribed(home: Path, service: Receiver, *names: str) -> dict[str, SubscribedBrowser]:
    service.clear()
    browsers = {name: SubscribedBrowser(f"{service.url}/{name}") for name in names}
    with PushSubscriptions(home, ["127.0.0.1"]) as subscriptions:
        for browser in browsers.values():
            subscriptions.subscribe(browser.subscription)
    return browsers


def readable(browser: SubscribedBrowser, requests: list[Request]) -> list[dict[str, object]]:
    """Return what a browser can read of all that was sent."""
    found = []
    for request in requests:
        try:
            found.append(browser.notification(request.body))
        except Exception:  # it is for another
            continue
    return found


def test_each_browser_gets_what_only_it_can_read(tmp_path: Path, service: Receiver) -> None:
    browsers = subscribed(tmp_path, service, "ada", "grace")
    statuses = iter([503, 429])
    service.answer = lambda request: Answer(next(statuses, 201))
    with sink(tmp_path, push()) as alerts:
        alerts.begin()
        alerts.commit(batch(0, ("tea", 1), ("gone", None)))
        until(lambda: (status := delivery_status(outbox(tmp_path))) and status.delivered == 2)
    ids = set()
    for browser in browsers.values():
        (said,) = readable(browser, service.arrived())
        ids.add(said.pop("id"))
        assert said == {"title": "tea has 1", "body": "1", "url": "/tea"}
    assert len(ids) == 2
    for request in service.requests:
        assert py_vapid.Vapid02.verify(request.headers["authorization"])
        assert request.headers["content-encoding"] == "aes128gcm" and int(request.headers["ttl"]) > 0
        assert len(request.headers["topic"]) == 32


def test_a_browser_that_has_gone_is_forgotten(tmp_path: Path, service: Receiver) -> None:
    subscribed(tmp_path, service, "ada")
    service.answer = lambda request: Answer(410)
    with sink(tmp_path, push()) as alerts:
        alerts.begin()
        alerts.commit(batch(0, ("tea", 1)))
        until(lambda: (status := delivery_status(outbox(tmp_path))) and status.delivered == 1)
        alerts.commit(batch(1, ("tea", 2)))  # nobody is there any more
        until(lambda: (status := delivery_status(outbox(tmp_path))) and status.waiting == 0)
    assert len(service.requests) == 1
    with PushSubscriptions(tmp_path) as subscriptions:
        assert subscriptions.endpoints() == []


def test_what_the_service_refuses_is_set_aside(tmp_path: Path, service: Receiver) -> None:
    subscribed(tmp_path, service, "ada")
    service.answer = lambda request: Answer(413)
    with sink(tmp_path, push()) as alerts:
        alerts.begin()
        alerts.commit(batch(0, ("tea", 1)))
        until(lambda: set_aside(outbox(tmp_path)))
    (letter,) = set_aside(outbox(tmp_path))
    assert letter.error == "the push service answers 413"


def test_too_many_are_one_notification(tmp_path: Path, service: Receiver) -> None:
    (browser,) = subscribed(tmp_path, service, "ada").values()
    with sink(tmp_path, push("1 per hour")) as alerts:
        alerts.begin()
        alerts.commit(batch(0, *((f"k{number}", number) for number in range(30))))
        until(lambda: (status := delivery_status(outbox(tmp_path))) and status.delivered == 1)
    (said,) = readable(browser, service.requests)
    assert said["title"] == "30 notifications"
